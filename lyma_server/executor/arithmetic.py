"""`$((...))` and `((...))`: whole numbers, None where one is not known."""

from __future__ import annotations

import operator
import re
from typing import TYPE_CHECKING

from lyma_server.executor.syntax import Arithmetic, Expression, Literal, Operation, Word

if TYPE_CHECKING:
    from collections.abc import Callable

    from lyma_server.executor.words import Expander

_LARGEST = 1 << 63
_NUMBER = re.compile(r"(?:(\d+)#([0-9a-zA-Z]+)|0[xX]([0-9a-fA-F]+)|0([0-7]+)|(\d+))")
_NAME = re.compile(r"[A-Za-z_]\w*")


def _divide(left: int, right: int) -> int:
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


_BINARY: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": _divide, "&": operator.and_, "|": operator.or_,
    "%": lambda left, right: left - right * _divide(left, right), "^": operator.xor,
    "<<": lambda left, right: left << (right & 63), ">>": lambda left, right: left >> (right & 63),
    "**": lambda left, right: left ** min(right, 64) if right >= 0 else 0, "<": operator.lt, ">": operator.gt,
    "<=": operator.le, ">=": operator.ge, "==": operator.eq, "!=": operator.ne, ",": lambda _, right: right,
    "&&": lambda left, right: bool(left and right), "||": lambda left, right: bool(left or right),
}  # fmt: skip
_UNARY: dict[str, Callable[[int], int]] = {
    "-": operator.neg,
    "+": operator.pos,
    "~": operator.invert,
    "!": operator.not_,
}
_STEPS = {"++": 1, "--": -1}


def evaluate(expander: Expander, expression: Expression | None) -> int | None:  # noqa: PLR0911 - one a form
    """The number that an expression makes; its assignments and substitutions take place."""
    if expression is None:
        return None
    if isinstance(expression, Word):
        return _of_word(expander, expression)
    name = expression.operator
    if name in _STEPS or (name.endswith("=") and name not in ("==", "!=", "<=", ">=")):
        return _assign(expander, expression)
    values = [evaluate(expander, operand) for operand in expression.operands]
    if None in values:
        return None
    numbers = [value for value in values if value is not None]
    try:
        if len(numbers) == 1:
            return _fit(_UNARY.get(name, int)(numbers[0]))
        return _fit(_BINARY[name](numbers[0], numbers[1])) if name in _BINARY else None
    except ZeroDivisionError:
        return None


def _fit(number: int) -> int | None:
    return int(number) if -_LARGEST <= number < _LARGEST else None


def _assign(expander: Expander, expression: Operation) -> int | None:
    target = expression.operands[0]
    name = _name_of(target)
    old = evaluate(expander, target)
    if expression.operator in _STEPS:
        new = None if old is None else old + _STEPS[expression.operator]
    else:
        new = evaluate(expander, expression.operands[1])
        plain = expression.operator[:-1]
        if plain:
            new = _BINARY[plain](old, new) if plain in _BINARY and old is not None and new else None
    if name:
        from lyma_server.executor.marks import SOMETHING

        expander.world.set(name, (SOMETHING if new is None else str(new),))
    return new


def _name_of(expression: Expression) -> str:
    """The variable that an expression names, empty for any other expression."""
    if not isinstance(expression, Word) or len(expression.parts) != 1:
        return ""
    part = expression.parts[0]
    return part.text if isinstance(part, Literal) and _NAME.fullmatch(part.text) else ""


def _of_word(expander: Expander, word: Word) -> int | None:
    if len(word.parts) == 1 and isinstance(word.parts[0], Arithmetic):
        return evaluate(expander, word.parts[0].expression)
    texts = expander.text(word)
    return number_of(expander, texts[0]) if len(texts) == 1 else None


def number_of(expander: Expander, text: str, depth: int = 0) -> int | None:  # noqa: PLR0911 - one a notation
    """A number as bash reads it; a name stands for its variable, a list of digits may have a base."""
    text = text.strip()
    if not text:
        return 0
    sign = -1 if text.startswith("-") else 1
    match = _NUMBER.fullmatch(text.lstrip("+-"))
    if match is None:
        expander.run_hidden((text,))
        values = expander.world.get(text) if _NAME.fullmatch(text) and depth < 8 else None
        if values is None:
            return 0 if _NAME.fullmatch(text) else None
        return number_of(expander, values[0], depth + 1) if len(values) == 1 else None
    base, digits, hexadecimal, octal, decimal = match.groups()
    try:
        if base:
            return sign * int(digits, int(base))
        if hexadecimal:
            return sign * int(hexadecimal, 16)
        return sign * (int(octal, 8) if octal else int(decimal[:20]))
    except ValueError:
        return None
