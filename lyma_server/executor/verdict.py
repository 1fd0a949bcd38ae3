"""The verdict on a command before it runs, and on a program at the moment it is executed. Both use the same rules."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Literal, TypeAlias

from attrs import frozen

from lyma_server.executor.blacklist import Finding, judge_invocation
from lyma_server.executor.evaluation import Machine
from lyma_server.executor.invocation import Invocation, Scene, program_name
from lyma_server.executor.marks import is_plain
from lyma_server.executor.places import find_places
from lyma_server.executor.shell import Unreadable
from lyma_server.executor.tools import LINK_FOLLOWERS
from lyma_server.executor.world import TooComplex, start_world

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Answer: TypeAlias = Literal["allow", "block"]


@frozen
class Verdict:
    """`rule`, `part`, `reason` and `instead` are empty where the command is allowed. `reason` is a sentence."""

    verdict: Answer
    rule: str = ""
    part: str = ""
    reason: str = ""
    instead: str = ""

    @property
    def allowed(self) -> bool:
        return self.verdict == "allow"

    @property
    def message(self) -> str:
        """The refusal for a person or a model: the rule, the part, why, and what to do instead."""
        return f"{self.reason} {self.instead}".strip()


ALLOWED = Verdict("allow")


def judge(  # noqa: PLR0913 - the facts that a verdict rests on, each by name
    command: str,
    *,
    cwd: str,
    home: str,
    workspace: str,
    env: Mapping[str, str] | None = None,
    lyma_home: str | None = None,
) -> Verdict:
    """Judge the text of a command as bash would read it.

    `cwd`, `home`, `workspace` (empty where there is none) and `lyma_home` are absolute paths; `env` is the environment that
    the command will be given. Never raises: what cannot be read or followed is blocked.
    """
    try:
        places = find_places(home, workspace, lyma_home or posixpath.join(home, ".lyma"))
        machine = Machine()
        world = start_world(places, cwd, env or {})
        machine.run_text(world, command, top=True)
        for invocation in machine.invocations:
            finding = judge_invocation(invocation, places)
            if finding is not None:
                return _refusal(finding)
    except Unreadable as unreadable:
        return _unreadable(str(unreadable), unreadable.instead)
    except TooComplex:
        return _unreadable("it is too large or too deep to be followed")
    except Exception as error:  # noqa: BLE001 - whatever goes wrong while judging, the command does not run
        return _unreadable(f"judging it failed ({type(error).__name__})")
    return ALLOWED


def judge_exec(  # noqa: PLR0913 - the facts that a verdict rests on, each by name
    path: str, argv: Sequence[str], cwd: str, *, home: str, workspace: str, lyma_home: str, tool: str | None = None
) -> Verdict:
    """Judge a program at execve by what it is really given; no program text is read.

    `tool` is the name of the tool that `path` is a copy of or a link to, where its identity is known.
    """
    try:
        name = tool or program_name(path)
        words = tuple(argv)
        if not is_plain("\n".join((path, cwd, *words))):
            return _unreadable("it holds characters that have a meaning of their own here (U+10FF00 and above)")
        name, words = _inner_tool(name, words)
        invocation = Invocation(name, words, Scene((cwd,), through_links=name in LINK_FOLLOWERS))
        reads = name in LINK_FOLLOWERS or _names_secret((*words, cwd), lyma_home)
        finding = judge_invocation(invocation, find_places(home, workspace, lyma_home), reads=reads)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong while judging, the program does not run
        return _unreadable(f"judging it failed ({type(error).__name__})")
    return _refusal(finding) if finding is not None else ALLOWED


_SECRET_NAMES = re.compile(
    r"\.(?:ssh|gnupg|lyma|netrc|aws|docker|kube|config|password-store)\b|shadow|(?<![\w.-])/(?:proc|dev|etc)/|\.\./"
)


def _names_secret(words: tuple[str, ...], lyma_home: str) -> bool:
    """Whether any of the words may lead to a secret: a quick look that spares most programs the long one."""
    text = "\n".join(words)
    return _SECRET_NAMES.search(text) is not None or lyma_home in text


def _inner_tool(name: str, argv: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The tool that a multi-call binary or the loader is asked to be."""
    for _ in range(4):
        if name in ("busybox", "toybox", "coreutils") or name.startswith(("ld-linux", "ld-musl", "ld.so")):
            called = program_name(argv[0]) if argv else name
            if called != name and not name.startswith("ld"):
                return called, argv
            rest = argv[1:]
            while rest and rest[0].startswith("-"):
                named = rest[0].startswith("--coreutils-prog=")
                rest = (
                    (rest[0].partition("=")[2], *rest[1:]) if named else rest[2 if rest[0] in _LOADER_VALUES else 1 :]
                )
            if not rest:
                return name, argv
            name, argv = program_name(rest[0]), rest
        else:
            break
    return name, argv


_LOADER_VALUES = frozenset(
    {
        "--library-path",
        "--preload",
        "--audit",
        "--argv0",
        "--inhibit-rpath",
        "--glibc-hwcaps-prepend",
        "--glibc-hwcaps-mask",
    }
)


def _refusal(finding: Finding) -> Verdict:
    rule = finding.rule
    return Verdict("block", rule.name, finding.part, f"It {rule.reason}: {finding.part}.", rule.instead)


def _unreadable(reason: str, instead: str = "Write it in a simpler form.") -> Verdict:
    return Verdict("block", "unreadable", "", f"The command cannot be judged: {reason}.", instead)
