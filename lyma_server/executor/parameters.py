"""`$x`, `${x:-y}`, `${x%pattern}`, `${x//a/b}`, `${!x}`, `"$@"`: what a parameter expands to."""

from __future__ import annotations

import re
from fnmatch import translate
from functools import lru_cache
from typing import TYPE_CHECKING

from lyma_server.executor import arithmetic
from lyma_server.executor.escapes import decode_ansi
from lyma_server.executor.marks import (
    BREAK,
    NOTHING,
    OURSELVES,
    PATTERNS,
    SOMETHING,
    STAR,
    UNKNOWN,
    UNKNOWNS,
    UNPROTECT,
    blur,
    deactivate,
    is_known,
)
from lyma_server.executor.scripts_on_disk import LENIENT
from lyma_server.executor.syntax import Expression, Parameter, Word
from lyma_server.executor.world import Alternatives, join, limit

if TYPE_CHECKING:
    from collections.abc import Callable

    from lyma_server.executor.words import Expander

_LISTS = ("@", "*")
_MAX_MATCHED = 2048
MAX_STARS = 2


def is_list(parameter: Parameter) -> bool:
    """`"$@"`, `"${x[@]}"`: becomes as many fields as there are items, none included."""
    if parameter.operator == "length":
        return False
    return parameter.name == "@" or _index_text(parameter.index) == "@"


def _index_text(index: Expression | None) -> str | None:
    if isinstance(index, Word) and len(index.parts) == 1:
        return getattr(index.parts[0], "text", None)
    return None


def expand(expander: Expander, parameter: Parameter, *, quoted: bool) -> Alternatives:
    """Every text that a parameter may become; items of a list are parted by a BREAK."""
    if parameter.operator == "names":
        names = sorted(name for name in expander.world.variables if name.startswith(parameter.name))
        return (" ".join(names),)
    items = _items(expander, parameter)
    if items is not None:
        return _expand_list(expander, parameter, items, quoted=quoted)
    values = _values(expander, parameter)
    if parameter.indirect:
        values = _follow(expander, values)
    return _operate(expander, parameter, values, quoted=quoted)


def _expand_list(expander: Expander, parameter: Parameter, items: list[str], *, quoted: bool) -> Alternatives:
    if parameter.operator == "length":
        return (str(len(items)),)
    if parameter.operator == "slice":
        items = items[_slice_of(expander, parameter, offset=0 if parameter.name not in _LISTS else -1)]
    elif parameter.operator:
        if not items:
            return _operate(expander, parameter, None, quoted=quoted)
        if not parameter.operator.startswith((":", "-", "+", "=", "?")):
            items = [_operate(expander, parameter, (item,), quoted=quoted)[0] for item in items]
    if quoted and is_list(parameter):
        return (BREAK.join(NOTHING + item for item in items),)
    return join(((item,) for item in items), _first_separator(expander) if quoted else BREAK)


def _first_separator(expander: Expander) -> str:
    """What joins the items of `"$*"`: the first character of IFS, a space where IFS is not set."""
    values = expander.world.get("IFS")
    return values[0][:1] if values else " "


def _items(expander: Expander, parameter: Parameter) -> list[str] | None:
    if parameter.name in _LISTS:
        return list(expander.world.positional)
    if _index_text(parameter.index) not in _LISTS:
        return None
    items = expander.world.arrays.get(parameter.name)
    if items is not None:
        return list(items) if parameter.indirect else list(items.values())
    values = expander.world.variables.get(parameter.name)
    return list(values[:1]) if values else []


def _values(expander: Expander, parameter: Parameter) -> Alternatives | None:
    if parameter.index is not None:
        items = expander.world.arrays.get(parameter.name)
        if items is None:
            arithmetic.evaluate(expander, parameter.index)
        if items is not None:
            return _element(expander, items, parameter.index)
    return lookup(expander, parameter.name)


def _element(expander: Expander, items: dict[str, str], index: Expression) -> Alternatives | None:
    key = next((text for text in keys_of(expander, index) if text in items), None)
    if key is None:
        number = arithmetic.evaluate(expander, index)
        key = None if number is None else str(number if number >= 0 else number + len(items))
    if key is None:
        return limit([*items.values(), UNKNOWN])
    return (items[key],) if key in items else None


def keys_of(expander: Expander, index: Expression) -> Alternatives:
    """The texts of an index, by which an array with names for keys knows its items."""
    return expander.text(index) if isinstance(index, Word) else ()


_SPECIAL: dict[str, Callable[[Expander], Alternatives]] = {
    "0": lambda expander: expander.world.get("0") or ("bash",),
    "#": lambda expander: (str(len(expander.world.positional)),),
    "?": lambda _: (SOMETHING,),
    "$": lambda _: (SOMETHING,),
    "!": lambda _: (SOMETHING,),
    "-": lambda _: ("hB",),
    "_": lambda expander: expander.world.variables.get("_", (UNKNOWN,)),
    "PPID": lambda _: (OURSELVES,),
    "PWD": lambda expander: expander.world.cwd,
    "OLDPWD": lambda expander: expander.world.old_cwd,
}


def lookup(expander: Expander, name: str) -> Alternatives | None:
    """The value of a variable, special or positional parameter; None where it is not set."""
    if name.isdigit() and name != "0":
        position = int(name) - 1
        items = expander.world.positional
        return (items[position],) if position < len(items) else None
    special = _SPECIAL.get(name)
    value = special(expander) if special else expander.world.get(name)
    return (SOMETHING,) if value is None and LENIENT in expander.world.options else value


def _follow(expander: Expander, values: Alternatives | None) -> Alternatives | None:
    found: list[str] = []
    for value in values or ():
        if is_known(value):
            found.extend(lookup(expander, value.split("[")[0]) or ())
        else:
            found.append(blur(value))
    return limit(found) if found else None


def _operate(  # noqa: PLR0911 - one a kind of operator
    expander: Expander, parameter: Parameter, values: Alternatives | None, *, quoted: bool
) -> Alternatives:
    operator = parameter.operator
    if not operator:
        if values is None and "nounset" in expander.world.options:
            return (SOMETHING,)
        return values if values is not None else ("",)
    if operator.lstrip(":") in ("-", "=", "?", "+"):
        return _default(expander, parameter, values, quoted=quoted)
    if operator == "length":
        return limit(str(len(value)) if is_known(value) else SOMETHING for value in values or ("",))
    if operator == "slice":
        cut = _slice_of(expander, parameter)
        return limit(value[cut] if is_known(value) else blur(value) for value in values or ("",))
    operands = [expander.pattern(word)[0] for word in parameter.words if word is not None]
    if values is None:
        return ("",)
    if operator == "@" and operands[:1] == ["P"]:
        expander.run_hidden(values)
    return limit(_TRANSFORMS[operator[0]](value, operator, operands) for value in values)


def _default(expander: Expander, parameter: Parameter, values: Alternatives | None, *, quoted: bool) -> Alternatives:
    """`:-`, `:=`, `:?`, `:+` and their forms without colon. After `:?` a variable is something, or the shell has ended."""
    kind, colon = parameter.operator[-1], parameter.operator.startswith(":")
    found: list[str] = []
    word = parameter.words[0] if parameter.words else None
    for value in values if values is not None else (None,):
        unset = value is None or (colon and value == "")
        perhaps = value is not None and colon and value != "" and not set(value) - (UNKNOWNS - {SOMETHING})
        if kind == "+":
            found += [] if unset else list(expander.operand(word, quoted=quoted))
            found += [""] if unset or perhaps else []
            continue
        if value is not None and not unset:
            found.append(SOMETHING + value.replace(UNKNOWN, "") if perhaps else value)
        if kind != "?" and (unset or perhaps):
            found += expander.operand(word, quoted=quoted)
    if kind == "?" and not found:
        found = [SOMETHING]
        expander.world.set(parameter.name, (SOMETHING,))
    if kind == "=":
        expander.world.set(parameter.name, limit(deactivate(text).translate(UNPROTECT) for text in found))
    return limit(found)


def _slice_of(expander: Expander, parameter: Parameter, *, offset: int = 0) -> slice:
    """The slice of `${x:a:b}`; `offset` is -1 where counting starts at one."""
    numbers = [_number(expander, word) for word in (*parameter.words, None)[:2]]
    start = (numbers[0] or 0) + (offset if (numbers[0] or 0) > 0 else 0)
    if numbers[1] is None:
        return slice(start, None)
    if numbers[1] < 0:
        return slice(start, numbers[1])
    stop = start + numbers[1]
    return slice(start, None if start < 0 <= stop else stop)


def _number(expander: Expander, word: Word | None) -> int | None:
    return arithmetic.evaluate(expander, word) if word is not None else None


@lru_cache(maxsize=1024)
def _matcher(pattern: str) -> re.Pattern[str]:
    """Active pattern characters match, all others are themselves."""
    escaped = "".join(f"[{c}]" if c in "*?[" else c for c in pattern)
    return re.compile(translate(deactivate(escaped)))


def matches(text: str, pattern: str) -> bool:
    """Whether a pattern whose active characters are marks matches the whole of `text`."""
    if PATTERNS.isdisjoint(pattern):
        return text == pattern
    return _matcher(pattern).match(text) is not None


def _strip(value: str, operator: str, operands: list[str]) -> str:
    pattern = operands[0] if operands else ""
    if len(value) > _MAX_MATCHED:
        return blur(value)
    lengths = range(len(value) + 1)
    for length in lengths if len(operator) == 1 else reversed(lengths):
        if operator[0] == "#" and matches(value[:length], pattern):
            return value[length:]
        if operator[0] == "%" and matches(value[len(value) - length :], pattern):
            return value[: len(value) - length]
    return value


def _replace(value: str, operator: str, operands: list[str]) -> str:
    pattern, replacement = (*operands, "", "")[:2]
    if not pattern or len(value) > _MAX_MATCHED:
        return value
    anchor = pattern[0] if operator == "/" and pattern[0] in "#%" else ""
    expression = _longest_match(pattern.removeprefix(anchor))
    expression = {"#": rf"\A(?:{expression})", "%": rf"(?:{expression})\Z", "": expression}[anchor]
    count = 0 if operator == "//" else 1
    return re.sub(
        expression,
        lambda match: replacement if match.group(0) or not value else "",
        value,
        count=count,
        flags=re.DOTALL,
    )


def _longest_match(pattern: str) -> str:
    """A pattern as an expression that takes as much as it can, as bash does; one of many stars takes as little as it can,
    since anything else might take for ever.
    """
    escaped = "".join(f"[{c}]" if c in "*?[" else c for c in pattern)
    if pattern.count(STAR) > MAX_STARS:
        return translate(deactivate(escaped)).removesuffix(r"\Z").removesuffix(r"\z")
    parts = (translate(deactivate(part)) for part in escaped.split(STAR))
    return ".*".join(part.removesuffix(r"\Z").removesuffix(r"\z") for part in parts)


def _case(value: str, operator: str, _operands: list[str]) -> str:
    change = str.upper if operator[0] == "^" else str.lower
    return change(value) if len(operator) == 2 else change(value[:1]) + value[1:]


def _letter(value: str, _operator: str, operands: list[str]) -> str:
    letters: dict[str, Callable[[str], str]] = {
        "U": str.upper,
        "u": lambda text: text[:1].upper() + text[1:],
        "L": str.lower,
        "E": decode_ansi,
        "Q": lambda text: "'" + text.replace("'", "'\\''") + "'",
        "A": lambda _: UNKNOWN,
        "a": lambda _: "",
    }
    return letters.get(operands[0] if operands else "", str)(value)


_TRANSFORMS: dict[str, Callable[[str, str, list[str]], str]] = {
    "#": _strip, "%": _strip, "/": _replace, "^": _case, ",": _case, "@": _letter,
}  # fmt: skip
