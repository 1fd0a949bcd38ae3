"""Redirections: where input comes from, where output goes, and what then stands in a file."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from attrs import define, evolve

from lyma_server.executor.invocation import Redirection
from lyma_server.executor.marks import NETWORK, UNKNOWN
from lyma_server.executor.words import Expander
from lyma_server.executor.world import Alternatives, Outcome, World, join

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lyma_server.executor.evaluation import Machine
    from lyma_server.executor.syntax import Redirect, Statement

NETWORK_FILES = ("/dev/tcp/", "/dev/udp/")
_WRITES = frozenset({">", ">>", ">|", "&>", "&>>", "<>", ">&"})
_BOTH = frozenset({"&>", "&>>"})
STDIN_FILES = ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
_EMPTY = ("/dev/null",)


@define
class Opened:
    """What a statement's redirections opened; `settle` moves the output to where it goes."""

    machine: Machine
    world: World
    output_path: str | None = None
    appends: bool = False
    hides_output: bool = False

    def settle(self, outcome: Outcome) -> Outcome:
        if self.output_path is not None:
            if self.output_path not in _EMPTY:
                self.machine.save(self.world, self.output_path, outcome.output, append=self.appends)
            return evolve(outcome, output=("",))
        return evolve(outcome, output=("",)) if self.hides_output else outcome


@contextmanager
def opened(machine: Machine, world: World, redirects: tuple[Redirect, ...]) -> Iterator[Opened]:
    """Open the redirections of a statement while it runs."""
    state = Opened(machine, world)
    if not redirects:
        yield state
        return
    saved = world.stdin, world.piped, world.redirections
    for redirect in redirects:
        _open(state, redirect)
    machine.emit(world, ())
    try:
        yield state
    finally:
        world.stdin, world.piped, world.redirections = saved
        if world.kept is not None:
            (world.stdin, world.piped), world.kept = world.kept, None


def _open(state: Opened, redirect: Redirect) -> None:
    world, operator = state.world, redirect.operator
    expander = Expander(state.machine, world)
    if operator in ("<<", "<<-"):
        body = redirect.heredoc
        literal, tabs = redirect.literal, operator == "<<-"
        _supply(world, redirect, expander.heredoc(body, literal=literal, strip_tabs=tabs) if body else ("",))
        return
    targets = expander.text(redirect.target)
    if operator == "<<<":
        _supply(world, redirect, join((targets, ("\n",))))
        return
    if operator in (">&", "<&") and all(target.rstrip("-").isdigit() or target == "-" for target in targets):
        _duplicate(state, redirect, targets[0])
        return
    for target in targets:
        _connect(state, redirect, target)


def _supply(world: World, redirect: Redirect, content: Alternatives) -> None:
    """Text of the command itself, on stdin or on another descriptor."""
    if redirect.descriptor in ("", "0"):
        _feed(world, content)
        return
    path = f"/dev/fd/{redirect.descriptor}"
    world.files[path] = content
    world.redirections += (Redirection(redirect.descriptor, path, writes=False, reads=True),)


def _feed(world: World, content: Alternatives) -> None:
    world.stdin, world.piped = content, True


def _duplicate(state: Opened, redirect: Redirect, target: str) -> None:
    """`2>&1`, `<&5`: one descriptor becomes another."""
    world = state.world
    descriptor = redirect.descriptor or ("0" if redirect.operator == "<&" else "1")
    path = world.descriptors.get(target.rstrip("-"))
    path = path or next((r.target for r in reversed(world.redirections) if r.descriptor == target), None)
    if path is not None:
        world.redirections += (Redirection(descriptor, path, writes=True, reads=True),)
    if descriptor == "0":
        _feed(world, contents(world, path) if path else (UNKNOWN,))
    elif descriptor == "1" and target != "1":
        state.output_path, state.hides_output = path, True


def _connect(state: Opened, redirect: Redirect, target: str) -> None:
    world, operator = state.world, redirect.operator
    writes = operator in _WRITES
    descriptor = redirect.descriptor or ("1" if writes and operator != "<>" else "0")
    world.redirections += (Redirection(descriptor, target, writes=writes, reads=operator in ("<", "<>")),)
    if descriptor == "0":
        _feed(world, contents(world, target))
    elif descriptor == "1" and writes:
        state.output_path, state.appends = target, operator in (">>", "&>>")
    elif operator == "<":
        world.files[f"/dev/fd/{descriptor}"] = contents(world, target)
    if operator in _BOTH or (operator == ">&" and not redirect.descriptor):
        world.redirections += (Redirection("2", target, writes=True, reads=False),)


def printed_files(machine: Machine, world: World, statement: Statement) -> Alternatives:
    """What `< file` alone inside `$(...)` stands for; empty where that is not all that the statement is."""
    if statement.command is not None or [redirect.operator for redirect in statement.redirects] != ["<"]:
        return ()
    targets = Expander(machine, world).text(statement.redirects[0].target)
    return tuple(text for target in targets for text in contents(world, target))


def contents(world: World, path: str) -> Alternatives:
    """What reading a file gives: known for one that this command wrote."""
    place = world.locate(path)
    if place.startswith(NETWORK_FILES):
        return (NETWORK,)
    if place in STDIN_FILES:
        return world.stdin
    if place in _EMPTY:
        return ("",)
    known = world.read(path)
    return known if known is not None else (UNKNOWN + world.origin(path),)
