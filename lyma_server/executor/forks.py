"""Fork bombs: what starts itself without end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lyma_server.executor.syntax import (
    Call,
    Chain,
    Command,
    CountingFor,
    Evaluate,
    Group,
    If,
    Inner,
    Literal,
    Statement,
    While,
    Word,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lyma_server.executor.evaluation import Machine
    from lyma_server.executor.world import World

FORK_BOMB = "fork bomb"
"""The program name under which the rules know what is found here."""

_ALWAYS = frozenset({"true", ":", "/bin/true"})
_NEVER = frozenset({"false", "/bin/false"})
_PAUSES = frozenset({"wait", "sleep", "break", "exit", "return", "read", "inotifywait", "fg"})


def note_pipeline(machine: Machine, world: World, node: Chain) -> None:
    """A function that pipes into itself, or more than once into others of its kind."""
    if not machine.stack or not any(operator in ("|", "|&") for operator, _ in node.rest):
        return
    stages = [node.first, *(statement for _, statement in node.rest)]
    if sum(_calls_itself(machine, stage) for stage in stages) > 1:
        machine.emit(world, (FORK_BOMB,))


def note_background(machine: Machine, world: World, statement: Statement) -> None:
    """A function or script that starts itself in the background."""
    if machine.stack and any(_calls_itself(machine, inner) for inner in _direct(statement)):
        machine.emit(world, (FORK_BOMB,))


def note_loop(machine: Machine, world: World, node: While) -> None:
    """An endless loop that starts something in the background every time."""
    condition = node.condition[-1] if node.condition else None
    endless = _NEVER if node.until else _ALWAYS
    if condition and _first_word(condition) in endless and _spawns(node.body):
        machine.emit(world, (FORK_BOMB,))
    if condition and _is_true_number(condition) and _spawns(node.body):
        machine.emit(world, (FORK_BOMB,))


def note_endless(machine: Machine, world: World, node: CountingFor) -> None:
    """`for ((;;))` that starts something in the background every time."""
    if len(node.head) < 2 and _spawns(node.body):
        machine.emit(world, (FORK_BOMB,))


def _calls_itself(machine: Machine, statement: Statement) -> bool:
    word = _first_word(statement)
    return word is not None and (word in machine.stack or (word == "$0" and any("/" in name for name in machine.stack)))


def _direct(statement: Statement) -> Iterator[Statement]:
    """A statement with the parts of its pipeline or group."""
    command: Command | None = statement.command
    yield statement
    if isinstance(command, Chain):
        yield from _direct(command.first)
        for _, part in command.rest:
            yield from _direct(part)
    elif isinstance(command, Group):
        for part in command.statements:
            yield from _direct(part)


def _spawns(body: tuple[Statement, ...]) -> bool:
    inner = [part for statement in body for part in _within(statement)]
    if any(_first_word(part) in _PAUSES and not part.background for part in inner):
        return False
    return any(part.background for part in inner)


def _within(statement: Statement) -> Iterator[Statement]:
    yield from _direct(statement)
    command = statement.command
    if isinstance(command, If):
        for part in (*command.condition, *command.then):
            yield from _within(part)
    elif isinstance(command, Inner) and command.statement:
        yield from _within(command.statement)


def _first_word(statement: Statement) -> str | None:
    command = statement.command
    if not isinstance(command, Call) or not command.words:
        return None
    texts = []
    for part in command.words[0].parts:
        if isinstance(part, Literal):
            texts.append(part.text)
        else:
            texts.append("$" + getattr(part, "name", "") if hasattr(part, "name") else "")
    return "".join(texts)


def _is_true_number(statement: Statement) -> bool:
    command = statement.command
    if not isinstance(command, Evaluate) or command.test:
        return False
    expression = command.expressions[-1]
    return (
        isinstance(expression, Word) and len(expression.parts) == 1 and getattr(expression.parts[0], "text", "0") != "0"
    )
