"""Words of a command into the fields that a program would be given."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from attrs import evolve

from lyma_server.executor import arithmetic, parameters
from lyma_server.executor.braces import expand_braces
from lyma_server.executor.marks import (
    ANY,
    BRACE_CLOSE,
    BRACE_OPEN,
    BREAK,
    COMMA,
    NOTHING,
    PROTECT,
    SET_CLOSE,
    SET_OPEN,
    SOMETHING,
    STAR,
    TILDE,
    UNPROTECT,
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
from lyma_server.executor.world import Alternatives, World, join, limit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lyma_server.executor.evaluation import Machine

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
_OPAQUE, _LAST_OPAQUE = 0x100000, chr(0x10E000)
_PIECES = re.compile(f"[{chr(_OPAQUE)}-{_LAST_OPAQUE}]|[^{chr(_OPAQUE)}-{_LAST_OPAQUE}]+")
_NAME = re.compile(r"\w+", re.ASCII)
_TO_TEXT = str.maketrans({BRACE_OPEN: "{", BRACE_CLOSE: "}", COMMA: ",", TILDE: "~", NOTHING: None})


def _unquoted(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        joined, escaped, active = match.groups()
        if joined:
            return ""
        return escaped.translate(PROTECT) + NOTHING if escaped else _ACTIVE[active]

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
        certain: list[str] = []
        for word in words:
            choices = self.fields(word)
            if len(choices) == 1:  # nearly always, and tens of thousands may follow each other
                certain += choices[0]
                continue
            self.machine.step()
            kept = tuple(certain)
            whole = list(dict.fromkeys(left + kept + right for left in whole for right in choices))[:48]
            certain.clear()
        return [left + tuple(certain) for left in whole]

    def fields(self, word: Word) -> list[tuple[str, ...]]:
        """The fields of one word, once for each way it may be read."""
        split = _brace_words(word)
        if split:
            return self.argv(split)
        texts = join(self._part(part) for part in word.parts)
        return list(dict.fromkeys(fields for text in texts for fields in self._fields_of(text)))

    def text(self, word: Word | None) -> Alternatives:
        """A word where no fields are split and no file names expanded: assignments, redirects, `case`."""
        if word is None:
            return ("",)
        joined = join(self._part(part, splits=False) for part in word.parts)
        tilded = (variant for text in joined for variant in self._tilde(text))
        return limit(deactivate(text).translate(_TO_TEXT).translate(UNPROTECT).replace(BREAK, " ") for text in tilded)

    def operand(self, word: Word | None, *, quoted: bool) -> Alternatives:
        """The word of `${x:-word}`; its own quotes hold where the whole is not quoted."""
        if word is None or quoted:
            return self.text(word)
        parts = ((part, self._part(part, splits=False)) for part in word.parts)
        texts = join(
            limit(text.translate(PROTECT) for text in texts) if _is_quoted(part) else texts for part, texts in parts
        )
        return limit(variant for text in texts for variant in self._tilde(text))

    def run_hidden(self, texts: Alternatives) -> None:
        """Follow substitutions inside text that bash expands once more: prompts and arithmetic."""
        for text in texts:
            if "$(" in text or "`" in text:
                self.machine.run_loose(self.world, ': "' + text.replace('"', '\\"') + '"')

    def pattern(self, word: Word | None) -> Alternatives:
        """A word as a pattern of `case` or `${x#...}`: active pattern characters stay marks."""
        if word is None:
            return ("",)
        joined = join(self._part(part, splits=False) for part in word.parts)
        return limit(text.translate(_TO_TEXT).translate(UNPROTECT).replace(BREAK, " ") for text in joined)

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
        for piece in expand_braces(text):
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


def _brace_words(word: Word) -> list[Word]:
    """The words that the braces of a word make, empty where it has none.

    Braces come first in bash, before a name is read to its end: `$x{a,b}` is `$xa $xb`. So the other parts of the word
    stand as single characters while its braces are expanded.
    """
    if not any(isinstance(part, Literal) and not part.quoted and "{" in part.text for part in word.parts):
        return []
    texts = [
        _unquoted(part.text) if isinstance(part, Literal) and not part.quoted else chr(_OPAQUE + index)
        for index, part in enumerate(word.parts)
    ]
    pieces = expand_braces("".join(texts))
    return [_put_back(word, piece) for piece in pieces] if len(pieces) > 1 else []


def _put_back(word: Word, text: str) -> Word:
    parts: list[Part] = []
    for piece in _PIECES.findall(text):
        if piece[0] >= chr(_OPAQUE) and piece[0] <= _LAST_OPAQUE:
            parts.append(word.parts[ord(piece) - _OPAQUE])
        elif parts and isinstance(parts[-1], Parameter) and parts[-1].short:
            parts[-1:] = _longer_name(parts[-1], piece)
        else:
            parts.append(Literal(piece, quoted=True))
    return Word(tuple(parts))


def _longer_name(parameter: Parameter, text: str) -> tuple[Part, ...]:
    more = _NAME.match(text)
    taken = more.group(0) if more and parameter.name.isidentifier() else ""
    rest = text[len(taken) :]
    longer = evolve(parameter, name=parameter.name + taken)
    return (longer, Literal(rest, quoted=True)) if rest else (longer,)


def _is_quoted(part: Part) -> bool:
    return isinstance(part, DoubleQuoted) or (isinstance(part, Literal) and part.quoted)


def _fields(text: str) -> tuple[str, ...]:
    return tuple(_close_sets(piece).translate(_TO_TEXT).translate(UNPROTECT) for piece in text.split(BREAK) if piece)


def _close_sets(field: str) -> str:
    """A bracket without its other half is a bracket."""
    opened, closed = field.find(SET_OPEN), field.rfind(SET_CLOSE)
    if opened < 0 and closed < 0:
        return field
    return field if 0 <= opened < closed - 1 else field.replace(SET_OPEN, "[").replace(SET_CLOSE, "]")


def _extended_glob(part: ExtendedGlob) -> str:
    """`@(a|b)` as a brace, any other kind as `*`."""
    if part.operator == "@(":
        return BRACE_OPEN + activate(part.pattern).replace("|", COMMA) + COMMA * ("|" not in part.pattern) + BRACE_CLOSE
    return STAR
