"""What programs print, where it can be worked out: so that text made by `echo`, `rev` or `base64` is read as what it is."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable
from typing import TypeAlias

from lyma_server.executor import decoders, text_filters
from lyma_server.executor.escapes import decode_echo, decode_format
from lyma_server.executor.invocation import Invocation, Scene
from lyma_server.executor.marks import (
    CREDENTIAL,
    DECODED,
    ENVIRONMENT,
    NETWORK,
    OURSELVES,
    SOMETHING,
    STAR,
    UNKNOWN,
    activate,
    has_pattern,
    taints,
)
from lyma_server.executor.options import read_options
from lyma_server.executor.paths import takes_everything
from lyma_server.executor.text_filters import cat
from lyma_server.executor.tools import DECODERS, FETCHERS, FETCHING_COMMANDS
from lyma_server.executor.world import Alternatives, World, limit

Fold: TypeAlias = Callable[[World, tuple[str, ...], str], str | None]
"""Arguments and stdin into output; None where it is not followed."""

MAX_SEQUENCE = 256


def fold(world: World, argv: tuple[str, ...]) -> Alternatives:
    """What `argv` prints, given what is known of its stdin."""
    name = argv[0]
    fold_one = _FOLDS.get(name)
    found: list[str] = []
    for stdin in world.stdin:
        output = fold_one(world, argv[1:], stdin) if fold_one else None
        if output is None:
            output = (_origin(name, argv) + _carried(world, argv, stdin) or UNKNOWN) + "\n"
        found.append(output)
    return limit(found)


_WHOLE = frozenset({"cat", "tac", "rev", "nl", "tr", "tee", "sort", "paste", "base64", "base32", "basenc", "xxd", "od", "hexdump", "openssl", "gzip",
                    "bzip2", "xz", "zstd", "tar", "zip", "strings"})  # fmt: skip
"""What these print holds all that they read; any other filter may leave the one value that is meant."""


def _carried(world: World, argv: tuple[str, ...], stdin: str) -> str:
    """The marks of what a program reads that are still on what it prints."""
    if argv[0] not in _WHOLE:
        return taints(stdin).replace(CREDENTIAL, "")
    from lyma_server.executor.effects import find_effects

    effects = find_effects(Invocation(argv[0], argv, Scene(world.cwd, through_links=False)))
    paths = [path for effect in effects if effect.kind == "read" for path in effect.paths]
    return "".join(dict.fromkeys(taints(stdin) + "".join(map(world.origin, paths))))


def _origin(name: str, argv: tuple[str, ...]) -> str:
    if name in FETCHERS or (name in FETCHING_COMMANDS and re.search(FETCHING_COMMANDS[name], " ".join(argv[1:]))):
        return NETWORK
    if name in DECODERS:
        return DECODED
    if name in ("pgrep", "pidof", "ps") and any("lyma" in word for word in argv[1:]):
        return OURSELVES
    return ""


def _echo(_world: World, arguments: tuple[str, ...], _stdin: str) -> str:
    words, newline, escapes = list(arguments), "\n", False
    while words and re.fullmatch(r"-[neE]+", words[0]):
        flags = words.pop(0)
        newline = "" if "n" in flags else newline
        escapes = "e" in flags or (escapes and "E" not in flags)
    text = " ".join(words)
    return (decode_echo(text) if escapes else text) + newline


_DIRECTIVE = re.compile(r"%(?:%|\([^)]*\)T|[-+ #0']*(\*|\d+)?(?:\.(?:\*|\d+))?([a-zA-Z]))")


def print_formatted(arguments: Iterable[str]) -> str:
    """What `printf format words...` prints; widths of more than 64 are not followed."""
    words = list(arguments)
    words = words[1:] if words[:1] == ["--"] else words
    if not words:
        return ""
    pattern, values = decode_format(words[0]), words[1:]
    used = _DIRECTIVE.search(pattern) is not None
    parts: list[str] = []
    while True:
        remaining = iter(values)
        parts.append(_DIRECTIVE.sub(lambda match, left=remaining: _directive(match, next(left, "")), pattern))  # type: ignore[misc]
        values = list(remaining)
        if not values or not used or len(parts) > MAX_SEQUENCE:
            return "".join(parts)


def _directive(match: re.Match[str], value: str) -> str:
    width, kind = match.groups()
    if kind is None:
        return "%"
    if kind == "c":
        return value[:1]
    if kind == "b":
        return decode_echo(value)
    if kind in "dioxXu" and re.fullmatch(r"-?\d+|0[xX][0-9a-fA-F]+|['\"].", value):
        number = ord(value[1]) if value[0] in "'\"" else int(value, 0 if "x" in value.lower() else 10)
        value = {"o": f"{number:o}", "x": f"{number:x}", "X": f"{number:X}"}.get(kind, str(number))
        if match.group(0).startswith("%0") and width:
            return value.zfill(min(int(width), 64))
    return value


def _printf(_world: World, arguments: tuple[str, ...], _stdin: str) -> str:
    return print_formatted(arguments)


def _dirname(_world: World, arguments: tuple[str, ...], _stdin: str) -> str | None:
    operands = read_options(arguments).operands
    return (
        "\n".join(posixpath.dirname(path.rstrip("/")) or ("/" if path[:1] == "/" else ".") for path in operands) + "\n"
    )


def _basename(_world: World, arguments: tuple[str, ...], _stdin: str) -> str | None:
    options = read_options(arguments, ("-s", "--suffix"))
    if not options.operands:
        return None
    name = posixpath.basename(options.operands[0].rstrip("/")) or "/"
    suffix = options.value("-s", "--suffix") or (options.operands[1] if len(options.operands) == 2 else "")
    return (name.removesuffix(suffix) if name != suffix else name) + "\n"


def locate_programs(names: Iterable[str]) -> Alternatives:
    """What `which` and `command -v` print: a path that keeps the name."""
    return ("".join(f"/usr/bin/{name}\n" if "/" not in name else f"{name}\n" for name in names),)


def _which(_world: World, arguments: tuple[str, ...], _stdin: str) -> str | None:
    return locate_programs(read_options(arguments).operands)[0]


def _seq(_world: World, arguments: tuple[str, ...], _stdin: str) -> str | None:
    if not arguments or not all(re.fullmatch(r"-?\d{1,9}", word) for word in arguments):
        return SOMETHING
    numbers = list(map(int, arguments))
    first, step, last = (
        (1, 1, numbers[0]) if len(numbers) == 1 else (numbers[0], 1 if len(numbers) == 2 else numbers[1], numbers[-1])
    )
    if step == 0 or abs(last - first) // abs(step) > MAX_SEQUENCE:
        return SOMETHING
    return "".join(f"{number}\n" for number in range(first, last + (1 if step > 0 else -1), step))


def _same(world: World, arguments: tuple[str, ...], stdin: str) -> str | None:
    operands = read_options(arguments, ("-k", "-t", "-S")).operands
    return cat(world, operands, stdin)


def _mktemp(_world: World, arguments: tuple[str, ...], _stdin: str) -> str:
    options = read_options(arguments, ("-p", "--tmpdir", "--suffix"))
    template = (options.operands or ("tmp.XXXXXXXXXX",))[0]
    folder = options.value("-p", "--tmpdir") or "/tmp"  # noqa: S108 - what mktemp prints, nothing is made there
    name = template.replace("X", "") + SOMETHING
    return (name if "/" in name else f"{folder.rstrip('/')}/{name}") + "\n"


def _path(world: World, arguments: tuple[str, ...], _stdin: str) -> str | None:
    operands = read_options(arguments).operands
    return "".join(f"{world.locate(operand)}\n" for operand in operands) or None


def _git(world: World, arguments: tuple[str, ...], _stdin: str) -> str | None:
    if "rev-parse" not in arguments and "describe" not in arguments:
        return None
    if "--show-toplevel" in arguments:
        return (world.places.workspace or SOMETHING) + "\n"
    return SOMETHING


def _processes(_world: World, arguments: tuple[str, ...], _stdin: str) -> str | None:
    """A listing of every process: until it is narrowed it stands for all of them."""
    if any("lyma" in word for word in arguments):
        return None
    everyone = any(re.fullmatch(r"-[a-zA-Z]*[eA][a-zA-Z]*|[a-z]*[ax][a-z]*", word) for word in arguments)
    return STAR + "\n" if everyone else None


def _pgrep(_world: World, arguments: tuple[str, ...], _stdin: str) -> str | None:
    """Process numbers: those of everybody, or of a whole user, where no name narrows them."""
    if any("lyma" in word for word in arguments):
        return None
    options = read_options(arguments, ("-u", "-U", "-g", "-G", "-P", "-t", "-s", "-d", "-F", "-r"), permute=False)
    broad = all(takes_everything(activate(re.sub(r"^\^?\.[*+]?\$?$|^\^$", "*", word))) for word in options.operands)
    return STAR + "\n" if broad and not options.all_values("-P", "-t", "-s", "-F", "-g") else None


def _kubectl(_world: World, arguments: tuple[str, ...], _stdin: str) -> str | None:
    """`get namespaces -o name`: what kind of thing each line names is known."""
    options = read_options(arguments, ("-n", "-o", "-l", "--namespace", "--output", "--selector", "--context"))
    if options.operands[:1] != ("get",) or len(options.operands) < 2 or options.value("-o", "--output") != "name":
        return None
    return f"{options.operands[1]}/{SOMETHING}\n"


def _jq(_world: World, arguments: tuple[str, ...], _stdin: str) -> str | None:
    """`jq -nr '"text"'`: the text."""
    options = read_options(arguments)
    match = re.fullmatch(r'\s*"((?:[^"\\]|\\[^(])*)"\s*', options.operands[0]) if len(options.operands) == 1 else None
    return decode_format(match.group(1)) + "\n" if match and options.has("-n", "--null-input") else None


def _docker(_world: World, arguments: tuple[str, ...], _stdin: str) -> str | None:
    """`volume ls` without a filter lists them all."""
    everything = arguments[:2] in (("volume", "ls"), ("volume", "list")) and not any(
        word.startswith(("-f", "--filter")) for word in arguments
    )
    return STAR + "\n" if everything else None


def _environment(world: World, arguments: tuple[str, ...], _stdin: str) -> str | None:
    words = [word for word in arguments if not word.startswith("-")]
    if not words:
        return ENVIRONMENT + "\n"
    values = [(world.get(word) or ("",))[0] for word in words]
    return "".join(value + "\n" for value in values)


def _env(_world: World, arguments: tuple[str, ...], _stdin: str) -> str | None:
    return ENVIRONMENT + "\n" if all(word.startswith("-") or "=" in word for word in arguments) else None


def _getent(world: World, arguments: tuple[str, ...], _stdin: str) -> str | None:
    """`getent passwd NAME`: a line of passwd(5), in which the sixth field is a home folder."""
    if arguments[:1] != ("passwd",) or len(arguments) != 2:
        return None
    name = arguments[1]
    own = name in (posixpath.basename(world.places.home), SOMETHING)
    home = "/root" if name == "root" else world.places.home if own else f"/home/{name}"
    return f"{name}:x:1000:1000::{home}:/bin/bash\n"


def _whoami(world: World, _arguments: tuple[str, ...], _stdin: str) -> str:
    return posixpath.basename(world.places.home) + "\n"


def _id(world: World, arguments: tuple[str, ...], stdin: str) -> str:
    return _whoami(world, (), stdin) if "n" in "".join(arguments) and "u" in "".join(arguments) else SOMETHING


def _something(_world: World, _arguments: tuple[str, ...], _stdin: str) -> str:
    return SOMETHING + "\n"


def _ls(_world: World, arguments: tuple[str, ...], _stdin: str) -> str:
    options = read_options(arguments, ("-I", "-w", "-T", "--ignore", "--color", "--sort", "--time"))
    operands = options.operands or (".",)
    if options.has("-d", "--directory") or any(has_pattern(operand) for operand in operands):
        return "\n".join(operands) + "\n"
    return STAR + "\n"


def _curl(_world: World, arguments: tuple[str, ...], _stdin: str) -> str:
    options = read_options(
        arguments, ("-o", "-H", "-d", "-X", "-u", "-A", "-b", "-e", "-F", "-T", "-m", "-w", "--output", "-O")
    )
    return "" if options.value("-o", "--output") not in (None, "-") else NETWORK + "\n"


def _python(_world: World, arguments: tuple[str, ...], _stdin: str) -> str | None:
    """`-c "print('text')"`: the text."""
    if len(arguments) != 2 or arguments[0] != "-c":
        return None
    match = re.fullmatch(r"\s*print\((['\"])([^'\"\\]*)\1(\[::-1\])?\)\s*", arguments[1])
    return None if match is None else (match.group(2)[::-1] if match.group(3) else match.group(2)) + "\n"


_FOLDS: dict[str, Fold] = {
    "echo": _echo, "printf": _printf, "cat": cat, "dirname": _dirname, "basename": _basename, "which": _which, "rev": text_filters.rev,
    "tac": text_filters.tac, "tr": text_filters.tr, "base64": decoders.base64, "base32": decoders.base32, "xxd": decoders.xxd, "openssl": decoders.openssl, "seq": _seq, "sed": text_filters.sed,
    "cut": text_filters.cut, "head": text_filters.head, "grep": text_filters.grep, "sort": _same, "uniq": _same, "tee": lambda _w, _a, stdin: stdin,
    "awk": text_filters.awk, "mktemp": _mktemp, "realpath": _path, "readlink": _path, "git": _git, "printenv": _environment, "env": _env,
    "whoami": _whoami, "id": _id, "logname": _whoami, "hostname": _something, "date": _something, "getent": _getent, "uname": _something,
    "nproc": _something, "uuidgen": _something, "tty": _something, "arch": _something, "ls": _ls, "curl": _curl,
    "ps": _processes, "pgrep": _pgrep, "kubectl": _kubectl, "oc": _kubectl, "jq": _jq, "docker": _docker, "podman": _docker, "nerdctl": _docker, "python3": _python, "python": _python,
}  # fmt: skip


def follows(name: str) -> bool:
    """Whether the output of a program is worked out here."""
    return name in _FOLDS
