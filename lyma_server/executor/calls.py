"""Simple commands: assignments, functions, aliases, built-ins, and everything else."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from attrs import evolve

from lyma_server.executor import arithmetic, builtin_commands, external
from lyma_server.executor.marks import FIRST, UNKNOWN, has_pattern, is_known
from lyma_server.executor.parameters import keys_of
from lyma_server.executor.paths import covers
from lyma_server.executor.tools import DESTRUCTIVE
from lyma_server.executor.words import Expander
from lyma_server.executor.world import Outcome, World, join, limit

if TYPE_CHECKING:
    from lyma_server.executor.evaluation import Machine
    from lyma_server.executor.syntax import Assignment, Call, Declare, Expression

MAX_CALL_DEPTH = 24


def call(machine: Machine, world: World, node: Call) -> Outcome:
    """A simple command: its words are expanded first, then its assignments take effect, for it alone where it has words."""
    expander = Expander(machine, world)
    argvs = [argv for argv in expander.argv(node.words) if argv]
    if not argvs:
        for assignment in node.assignments:
            assign(expander, assignment)
        world.variables["_"] = ("",)
        return Outcome(status=None, assumed=True)
    before = dict(world.variables) if node.assignments else None
    for assignment in node.assignments:
        assign(expander, assignment)
    machine.note_environment(world, [assignment.name for assignment in node.assignments])
    outcome = _each(machine, world, argvs)
    if before is not None and argvs[0][0] not in ("export", "readonly"):
        names = [assignment.name for assignment in node.assignments]
        for name in names:
            world.variables.pop(name, None)
            if name in before:
                world.variables[name] = before[name]
    world.variables["_"] = limit(UNKNOWN if has_pattern(argv[-1]) else argv[-1] for argv in argvs)
    return outcome


def _each(machine: Machine, world: World, argvs: list[tuple[str, ...]]) -> Outcome:
    """Run every reading of one command."""
    if len(argvs) == 1:
        return execute(machine, world, argvs[0])
    start, outcomes = world.fork(), []
    for number, argv in enumerate(argvs):
        branch = start.fork() if number else world
        outcomes.append(execute(machine, branch, argv))
        if number:
            world.merge(branch)
    statuses = {outcome.status for outcome in outcomes}
    return Outcome(
        limit(text for outcome in outcomes for text in outcome.output),
        statuses.pop() if len(statuses) == 1 else None,
        ends=all(outcome.ends for outcome in outcomes),
        assumed=all(outcome.assumed for outcome in outcomes),
    )


def assign(expander: Expander, assignment: Assignment) -> None:
    """`name=value`, `name+=value`, `name=(items)`, `name[index]=value`."""
    world, name = expander.world, assignment.name
    if assignment.items is not None and any(assignment.keys):
        pairs = zip(assignment.keys, assignment.items, strict=True)
        items = {} if not assignment.append else dict(world.arrays.get(name, {}))
        for number, (place, word) in enumerate(pairs):
            items[_key(expander, place) if place else str(number)] = expander.text(word)[0]
        world.arrays[name] = items
        world.variables.pop(name, None)
        return
    if assignment.items is not None:
        fields = [field for fields in expander.argv(assignment.items)[:1] for field in fields]
        old = list(world.arrays.get(name, {}).values()) if assignment.append else []
        world.arrays[name] = {str(index): value for index, value in enumerate([*old, *fields])}
        world.variables.pop(name, None)
        return
    values = expander.text(assignment.value)
    if assignment.index is not None:
        key = _key(expander, assignment.index)
        if name == "BASH_ALIASES":
            world.aliases[key] = values[0]
        items = world.arrays.setdefault(name, {})
        items[key] = items.get(key, "") * assignment.append + values[0]
        return
    if assignment.append:
        values = join((world.get(name) or ("",), values))
    world.set(name, values)


def _key(expander: Expander, index: Expression) -> str:
    number = arithmetic.evaluate(expander, index)
    text = next(iter(keys_of(expander, index)), "")
    return text if number is None or (text and not text.lstrip("-").isdigit() and number == 0) else str(number)


def declare(machine: Machine, world: World, node: Declare) -> Outcome:
    """`export`, `declare`, `local`, `readonly`, `typeset`; a function of that name comes first."""
    if node.variant in world.functions:
        return _function(machine, world, (node.variant,))
    expander = Expander(machine, world)
    argv: list[str] = [node.variant]
    for argument in node.arguments:
        if argument.naked:
            argv += (
                [field for fields in expander.fields(argument.value)[:1] for field in fields] if argument.value else []
            )
            continue
        if node.variant == "local" and world.scopes:
            world.scopes[-1].setdefault(argument.name, world.get(argument.name))
        if argument.value is None and argument.items is None:
            argv.append(argument.name)
            continue
        if argument.value and any("n" in flag for flag in argv[1:] if flag.startswith("-")):
            world.refer(argument.name, expander.text(argument.value)[0])
            continue
        assign(expander, argument)
        machine.note_environment(world, [argument.name])
    world.variables["_"] = (UNKNOWN,)
    return builtin_commands.declare(machine, world, tuple(argv))


def execute(machine: Machine, world: World, argv: tuple[str, ...], *, plain: bool = False) -> Outcome:
    """Run one list of fields. `plain` skips functions and aliases, as `command` and `builtin` do."""
    machine.enter()
    try:
        return _dispatch(machine, world, argv, plain=plain)
    finally:
        machine.leave()


def _dispatch(machine: Machine, world: World, argv: tuple[str, ...], *, plain: bool) -> Outcome:
    name = argv[0]
    if has_pattern(name):
        return _each(machine, world, [(tool, *argv[1:]) for tool in _tools_like(name)] or [("", *argv[1:])])
    if not plain and name in world.aliases and name not in machine.stack:
        return _alias(machine, world, argv)
    if not plain and name in world.functions:
        return _function(machine, world, argv)
    builtin = builtin_commands.BUILTINS.get(name)
    if builtin is not None:
        return builtin(machine, world, argv)
    return external.start(machine, world, argv)


def _tools_like(pattern: str) -> list[str]:
    """The tools that a command word with active pattern characters may stand for."""
    name = pattern.rpartition("/")[2]
    known = (
        *DESTRUCTIVE,
        "bash",
        "sh",
        "python3",
        "curl",
        "wget",
        "nc",
        "reboot",
        "shutdown",
        "chown",
        "truncate",
        "cat",
    )
    return [tool for tool in known if covers(name, tool)]


def _alias(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome:
    text = world.aliases[argv[0]] + " " + " ".join(quote(word) for word in argv[1:])
    machine.stack.append(argv[0])
    try:
        return machine.run_text(world, text)
    finally:
        machine.stack.pop()


def quote(word: str) -> str:
    """A word for a program text; unknown parts and patterns stay active."""
    return shlex.quote(word) if is_known(word) and not any(character >= FIRST for character in word) else word


def _function(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome:
    name = argv[0]
    if machine.stack.count(name) > 1 or len(machine.stack) > MAX_CALL_DEPTH:
        return Outcome(output=(UNKNOWN,))
    positional, references = world.positional, dict(world.references)
    world.positional = argv[1:]
    world.scopes.append({})
    machine.stack.append(name)
    try:
        outcome = machine.run(world, (world.functions[name],))
    finally:
        machine.stack.pop()
        world.positional, world.references = positional, references
        _leave_scope(world)
    return evolve(outcome, ends=False)


def _leave_scope(world: World) -> None:
    for name, old in world.scopes.pop().items():
        world.arrays.pop(name, None)
        if old is None:
            world.variables.pop(name, None)
        else:
            world.variables[name] = old
