"""Methods of texts and paths in a Python program: what they return, and what they would do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from lyma_server.executor.languages.python_calls import (
    CALLS,
    Call,
    as_command,
    change_mode,
    expand_user,
    first_text,
    join_paths,
    on_first,
    open_file,
)
from lyma_server.executor.languages.python_values import Place, Value, subscript, text_of
from lyma_server.executor.marks import SOMETHING, STAR, blur

if TYPE_CHECKING:
    from lyma_server.executor.languages.python import Reader

Method: TypeAlias = Callable[["Reader", Value, list[Value], dict[str, Value]], Value]


def _string(change: Callable[[str, list[str]], str]) -> Method:
    def method(_reader: Reader, owner: Value, arguments: list[Value], _named: dict[str, Value]) -> Value:
        if isinstance(owner, str | bytes | Place):
            return change(text_of(owner), [text_of(argument) for argument in arguments])
        return None

    return method


def _join_text(reader: Reader, owner: Value, arguments: list[Value], _named: dict[str, Value]) -> Value:
    return text_of(owner).join(text_of(item) for item in reader.items(arguments[0])) if arguments else None


def _format_text(_reader: Reader, owner: Value, arguments: list[Value], named: dict[str, Value]) -> Value:
    import re

    values = iter(arguments)

    def fill(match: re.Match[str]) -> str:
        name = match.group(1)
        if name.isdecimal():
            return text_of(subscript(arguments, int(name)))
        return text_of(named.get(name)) if name else text_of(next(values, None))

    return re.sub(r"\{(\w*)[^{}]*\}", fill, text_of(owner))


def _split(_reader: Reader, owner: Value, arguments: list[Value], _named: dict[str, Value]) -> Value:
    separator = first_text(arguments) or None
    return list(text_of(owner).split(separator)) if isinstance(owner, str | bytes) else None


def _on_place(call: Call) -> Method:
    """A method of a path as the call that does the same."""

    def method(reader: Reader, owner: Value, arguments: list[Value], named: dict[str, Value]) -> Value:
        return call(reader, [owner, *arguments], named) if isinstance(owner, Place | str) else None

    return method


def _write_into(reader: Reader, owner: Value, arguments: list[Value], _named: dict[str, Value]) -> Value:
    """Text written to a file is remembered, since the file may be run."""
    if isinstance(owner, Place):
        reader.start("tee", owner.text)
        reader.machine.save(reader.world, owner.text, (first_text(arguments),))
    return None


def _find(_reader: Reader, owner: Value, arguments: list[Value], _named: dict[str, Value]) -> Value:
    if not isinstance(owner, Place):
        return None
    from lyma_server.executor.searching import found_paths

    pattern = first_text(arguments)
    return [
        Place(path)
        for path in found_paths(owner.text, None if pattern in ("*", "**", "**/*") else pattern)
        if path != owner.text
    ]


def _iterate(_reader: Reader, owner: Value, _arguments: list[Value], _named: dict[str, Value]) -> Value:
    return [Place(f"{owner.text.rstrip('/')}/{STAR}")] if isinstance(owner, Place) else None


def _contents(reader: Reader, owner: Value, _arguments: list[Value], _named: dict[str, Value]) -> Value:
    """`.read()`: of a path its text, of a response what it is."""
    if isinstance(owner, Place):
        reader.start("cat", owner.text)
        return (reader.world.read(owner.text) or (blur(""),))[0]
    return owner


def _owner(_reader: Reader, owner: Value, _arguments: list[Value], _named: dict[str, Value]) -> Value:
    return owner


def _connected(reader: Reader, _owner: Value, _arguments: list[Value], _named: dict[str, Value]) -> Value:
    reader.connects = True
    return None


METHODS: dict[str, Method] = {
    "join": _join_text, "format": _format_text, "split": _split, "encode": _owner, "decode": _owner, "strip": _owner, "resolve": _owner,
    "absolute": _owner, "rstrip": _owner, "lstrip": _owner, "copy": _owner, "items": _owner, "values": _owner, "connect": _connected,
    "lower": _string(lambda text, _: text.lower()), "upper": _string(lambda text, _: text.upper()),
    "replace": lambda reader, owner, arguments, named: CALLS["os.rename"](reader, [owner, *arguments], named) if isinstance(owner, Place)
    else _string(lambda text, words: text.replace(words[0], words[1]) if len(words) > 1 else text)(reader, owner, arguments, named),
    "write": _write_into, "write_text": _write_into, "write_bytes": _write_into, "writelines": _write_into,
    "rename": _on_place(as_command("mv", "--")), "unlink": _on_place(on_first("rm", "-f", "--")), "rmdir": _on_place(on_first("rm", "-rf", "--")),
    "rmtree": _on_place(on_first("rm", "-rf", "--")),
    "touch": _on_place(on_first("touch")), "open": _on_place(open_file), "read_text": _contents, "read_bytes": _contents, "read": _contents,
    "chmod": _on_place(change_mode), "symlink_to": lambda reader, owner, arguments, _: reader.start("ln", "-s", "--", first_text(arguments), text_of(owner)),
    "glob": _find, "rglob": _find, "iterdir": _iterate, "expanduser": lambda reader, owner, _a, _n: Place(expand_user(reader, text_of(owner))),
    "joinpath": lambda reader, owner, arguments, _: Place(text_of(join_paths(reader, [owner, *arguments], {}))),
    "getvalue": _owner, "json": _owner, "readlines": _contents, "with_suffix": lambda _r, owner, _a, _n: Place(text_of(owner) + SOMETHING),
}  # fmt: skip
