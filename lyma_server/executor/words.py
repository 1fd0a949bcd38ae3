"""Words of a command into the fields that a program would be given."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from lyma_server.executor import arithmetic, parameters
from lyma_server.executor.marks import (
    ANY,
    BRACE_CLOSE,
    BRACE_OPEN,
    BREAK,
    COMMA,
    NOTHING,
    SET_CLOSE,
    SET_OPEN,
    SOMETHING,
    STAR,
    TILDE,
    activate,
    deactivate,
    is_plain,
)
from lyma_server.executor.syntax import (
    Arithmetic,
    DoubleQuoted,
    ExtendedGlob,
    Literal,
    Parameter,
    Part,
    ProcessSubstitution,
    Statement,
    Substitution,
    Word,
)
from lyma_server.executor.world import Alternatives, TooComplex, World, join, limit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lyma_server.executor.evaluation import Machine

MAX_FIELDS = 512
MAX_BRACE_WORK = 1 << 21
_ACTIVE = {
    "*": STAR,
    "?": ANY,
    "[": SET_OPEN,
    "]": SET_CLOSE,
    "{": BRACE_OPEN,
    "}": BRACE_CLOSE,
    ",": COMMA,
    "~": TILDE,
}
_UNQUOTED = re.compile(r"\\(\n)|\\(.)|([*?\[\]{},~])", re.DOTALL)
_IN_DOUBLE_QUOTES = re.compile(r'\\(?:\n|([$`"\\]))')
_IN_HEREDOC = re.compile(r"\\(?:\n|([$`\\]))")
_INNERMOST_BRACE = re.compile(f"{BRACE_OPEN}([^{BRACE_OPEN}{BRACE_CLOSE}]*){BRACE_CLOSE}")
_RANGE = re.compile(r"(-?\d+|[A-Za-z])\.\.(-?\d+|[A-Za-z])(?:\.\.(-?\d+))?")
_TO_TEXT = str.maketrans({BRACE_OPEN: "{", BRACE_CLOSE: "}", COMMA: ",", TILDE: "~", NOTHING: None})


def _unquoted(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        joined, escaped, active = match.groups()
        if joined:
            return ""
        return escaped + NOTHING if escaped else _ACTIVE[active]

    return _UNQUOTED.sub(replace, text) if not text.isalnum() else text


def _unescape(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda match: match.group(1) or "", text) if "\\" in text else text


class Expander:
    """Expands words in one state of one shell; substitutions inside them are run by the machine."""

    def __init__(self, machine: Machine, world: World) -> None:
        self.machine: Machine = machine
        self.world: World = world

    def argv(self, words: Iterable[Word]) -> list[tuple[str, ...]]:
        """Every list of fields that the words may become."""
        whole: list[tuple[str, ...]] = [()]
        for word in words:
            choices = self.fields(word)
            whole = list(dict.fromkeys(left + right for left in whole for right in choices))[:48]
        return whole

    def fields(self, word: Word) -> list[tuple[str, ...]]:
        """The fields of one word, once for each way it may be read."""
        texts = join(self._part(part) for part in word.parts)
        return list(dict.fromkeys(fields for text in texts for fields in self._fields_of(text)))

    def text(self, word: Word | None) -> Alternatives:
        """A word where no fields are split and no file names expanded: assignments, redirects, `case`."""
        if word is None:
            return ("",)
        joined = join(self._part(part, splits=False) for part in word.parts)
        tilded = (variant for text in joined for variant in self._tilde(text))
        return limit(deactivate(text).translate(_TO_TEXT).replace(BREAK, " ") for text in tilded)

    def pattern(self, word: Word | None) -> Alternatives:
        """A word as a pattern of `case` or `${x#...}`: active pattern characters stay marks."""
        if word is None:
            return ("",)
        joined = join(self._part(part, splits=False) for part in word.parts)
        return limit(text.translate(_TO_TEXT).replace(BREAK, " ") for text in joined)

    def heredoc(self, body: Word, *, literal: bool, strip_tabs: bool) -> Alternatives:
        """The text of a here-document."""
        parts: list[Alternatives] = []
        for part in body.parts:
            if isinstance(part, Literal):
                parts.append((part.text if literal else _unescape(_IN_HEREDOC, part.text),))
            else:
                parts.append(self._part(part, quoted=True))
        texts = (text.replace(NOTHING, "") for text in join(parts))
        return limit(re.sub(r"(?m)^\t+", "", text) if strip_tabs else text for text in texts)

    def _part(self, part: Part, *, quoted: bool = False, splits: bool = True) -> Alternatives:  # noqa: PLR0911 - one a part
        match part:
            case Literal(text=text, quoted=True):
                return (text or NOTHING,) if text != "~" else (text + NOTHING,)
            case Literal(text=text):
                return (_unescape(_IN_DOUBLE_QUOTES, text) if quoted else _unquoted(text),)
            case DoubleQuoted(parts=parts):
                return self._double_quoted(parts)
            case Parameter():
                values = parameters.expand(self, part, quoted=quoted)
                return values if quoted or not splits else limit(self._split(value) for value in values)
            case Substitution(statements=statements):
                return self._substitution(statements, quoted=quoted, splits=splits)
            case ProcessSubstitution():
                return (self.machine.open_process(self.world, part),)
            case ExtendedGlob():
                return (_extended_glob(part),)
            case Arithmetic(expression=expression):
                number = arithmetic.evaluate(self, expression)
                return (SOMETHING if number is None else str(number),)

    def _double_quoted(self, parts: tuple[Part, ...]) -> Alternatives:
        if len(parts) == 1 and isinstance(parts[0], Parameter) and parameters.is_list(parts[0]):
            return parameters.expand(self, parts[0], quoted=True)
        return join([(NOTHING,), *(self._part(part, quoted=True) for part in parts)])

    def _substitution(self, statements: tuple[Statement, ...], *, quoted: bool, splits: bool) -> Alternatives:
        output = limit(text.rstrip("\n") for text in self.machine.substitute(self.world, statements))
        return output if quoted or not splits else limit(self._split(text) for text in output)

    def _split(self, text: str) -> str:
        """Mark where an unquoted expansion breaks into fields and make its pattern characters active."""
        separators = "".join(self.world.get("IFS") or (" \t\n",))
        if any(character in separators for character in text):
            text = "".join(BREAK if character in separators else character for character in text)
        return activate(text)

    def _fields_of(self, text: str) -> list[tuple[str, ...]]:
        """Marks resolved: braces, then tildes, then the breaks between fields."""
        if is_plain(text):
            return [(text,)] if text else [()]
        variants: list[tuple[str, ...]] = [()]
        for piece in _expand_braces(text):
            choices = list(self._tilde(piece))
            variants = [left + _fields(choice) for left in variants for choice in choices]
        return variants

    def _tilde(self, text: str) -> Iterable[str]:
        """`~` and `~name` at the start of a word and after `=` or `:`."""
        if TILDE not in text:
            return (text,)
        pattern = re.compile(rf"(^|[=:{BREAK}]){TILDE}([\w.+-]*)(?=$|[/:{BREAK}])")
        return tuple(
            pattern.sub(lambda match: match.group(1) + self._home_of(match.group(2), home), text)  # noqa: B023 - used at once
            for home in self.world.home()
        )

    def _home_of(self, user: str, home: str) -> str:
        places = self.world.places
        special = {"": home, "+": self.world.cwd[0], "-": (self.world.old_cwd or self.world.cwd)[0], "root": "/root"}
        if user in special:
            return special[user]
        return places.home if user == posixpath.basename(places.home) else f"{posixpath.dirname(places.home)}/{user}"


def _fields(text: str) -> tuple[str, ...]:
    return tuple(_close_sets(piece).translate(_TO_TEXT) for piece in text.split(BREAK) if piece)


def _close_sets(field: str) -> str:
    """A bracket without its other half is a bracket."""
    opened, closed = field.find(SET_OPEN), field.rfind(SET_CLOSE)
    if opened < 0 and closed < 0:
        return field
    return field if 0 <= opened < closed else field.replace(SET_OPEN, "[").replace(SET_CLOSE, "]")


def _extended_glob(part: ExtendedGlob) -> str:
    """`@(a|b)` as a brace, any other kind as `*`."""
    if part.operator == "@(":
        return BRACE_OPEN + activate(part.pattern).replace("|", COMMA) + COMMA * ("|" not in part.pattern) + BRACE_CLOSE
    return STAR


def _expand_braces(text: str) -> list[str]:
    """Every word that the braces of `text` make, from the innermost outwards."""
    done: list[str] = []
    waiting = [text]
    work = 0
    while waiting:
        current = waiting.pop()
        work += len(current)
        if work > MAX_BRACE_WORK:
            raise TooComplex
        match = _INNERMOST_BRACE.search(current)
        if match is None:
            done.append(current)
            continue
        choices = _brace_choices(match.group(1))
        if len(waiting) + len(done) + len(choices) > MAX_FIELDS:
            choices = [SOMETHING]
        waiting.extend(current[: match.start()] + choice + current[match.end() :] for choice in reversed(choices))
    return done


def _brace_choices(inner: str) -> list[str]:
    if COMMA in inner:
        return inner.split(COMMA)
    span = _RANGE.fullmatch(inner)
    if span is None:
        return ["{" + inner + "}"]
    first, last, step = span.groups()
    if first.isalpha() != last.isalpha():
        return ["{" + inner + "}"]
    low, high = (ord(first), ord(last)) if first.isalpha() else (int(first), int(last))
    stride = abs(int(step or 1)) or 1
    numbers = range(low, high + 1, stride) if low <= high else range(low, high - 1, -stride)
    if len(numbers) > MAX_FIELDS:
        return [SOMETHING]
    return [chr(number) if first.isalpha() else str(number) for number in numbers]
