"""What every matcher is given."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from lyma_server.executor.effects import Effect
    from lyma_server.executor.invocation import Invocation
    from lyma_server.executor.places import Places


class Case(NamedTuple):
    """One program about to start, with what it would do to files."""

    invocation: Invocation
    effects: tuple[Effect, ...]
    places: Places

    @property
    def program(self) -> str:
        return self.invocation.program

    @property
    def arguments(self) -> tuple[str, ...]:
        return self.invocation.arguments

    @property
    def words(self) -> str:
        """The arguments in one line, for patterns over subcommands."""
        return " ".join(self.invocation.arguments)


Matcher: TypeAlias = Callable[[Case], str | None]
"""The offending part for the message, None where the rule does not speak of this case."""


def asks_for_help(case: Case) -> bool:
    """`--help` and its like, among the options: the program explains itself and does nothing."""
    words = case.arguments
    options = words[: words.index("--")] if "--" in words else words
    return any(word in ("--help", "--version", "-help") for word in options)


def only_tries(case: Case) -> bool:
    """Asks for help, or for a rehearsal, in the way of programs with subcommands."""
    words = case.arguments
    tries = any(re.fullmatch(r"--dry-?run(?:=(?!none|false).*)?", word) for word in words)
    return tries or asks_for_help(case) or words[-1:] in (("help",), ("-h",)) or words[:1] == ("help",)
