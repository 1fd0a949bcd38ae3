"""Reading the options of a program as getopt would."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@frozen
class Options:
    """`flags` holds each option as written (`-r`, `--recursive`), `values` those with a value, `operands` the rest in order."""

    flags: frozenset[str]
    values: tuple[tuple[str, str], ...]
    operands: tuple[str, ...]

    def has(self, *names: str) -> bool:
        """Whether one of `names` was given; a long option also by an unambiguous beginning of three letters or more."""
        if not self.flags.isdisjoint(names):
            return True
        longs = [name for name in names if name.startswith("--")]
        shortened = [flag for flag in self.flags if flag.startswith("--") and len(flag) > 3]
        return any(name.startswith(flag) for flag in shortened for name in longs)

    def value(self, *names: str) -> str | None:
        """The last value given to one of `names`."""
        return next((value for name, value in reversed(self.values) if name in names), None)

    def all_values(self, *names: str) -> tuple[str, ...]:
        return tuple(value for name, value in self.values if name in names)


def read_options(
    arguments: Sequence[str], with_value: Iterable[str] = (), *, permute: bool = True, single_dash: bool = False
) -> Options:
    """Split arguments into options and operands.

    `with_value` names the options that take a value (`-n`, `--max`). Without `permute` the first operand ends the options.
    With `single_dash` a word such as `-name` is one option, not a cluster of letters.
    """
    valued = frozenset(with_value)
    flags: set[str] = set()
    values: list[tuple[str, str]] = []
    operands: list[str] = []
    position = 0
    while position < len(arguments):
        word = arguments[position]
        position += 1
        if word == "--":
            operands.extend(arguments[position:])
            break
        if len(word) < 2 or word[0] != "-":
            operands.append(word)
            if not permute:
                operands.extend(arguments[position:])
                break
            continue
        found, value, takes_next = _read_word(word, valued, single_dash=single_dash)
        flags.update(found)
        if takes_next and position < len(arguments):
            value = arguments[position]
            position += 1
        if value is not None:
            values.append((found[-1], value))
    return Options(frozenset(flags), tuple(values), tuple(operands))


def _read_word(word: str, valued: frozenset[str], *, single_dash: bool) -> tuple[list[str], str | None, bool]:
    """The options in one word, the value that it carries, and whether the value is the next word."""
    if word.startswith("--") or single_dash:
        name, equals, value = word.partition("=")
        return [name], value if equals else None, not equals and name in valued
    found: list[str] = []
    for index, letter in enumerate(word[1:], start=2):
        name = "-" + letter
        found.append(name)
        if name in valued:
            rest = word[index:]
            return found, rest or None, not rest
    return found, None, False
