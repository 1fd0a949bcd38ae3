"""Following a command: each construct of the shell, with what it would leave behind."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import evolve

from lyma_server.executor import arithmetic, calls, conditions, forks, recipes, redirects
from lyma_server.executor.invocation import Invocation, Scene, program_name
from lyma_server.executor.shell import Unreadable, parse
from lyma_server.executor.side_effects import CRON_FOLDERS, STARTUP_FILES
from lyma_server.executor.syntax import (
    Call,
    Case,
    Chain,
    CountingFor,
    Declare,
    Evaluate,
    For,
    Function,
    Group,
    If,
    Inner,
    ProcessSubstitution,
    Statement,
    While,
)
from lyma_server.executor.words import Expander
from lyma_server.executor.world import Alternatives, Outcome, ShellEnds, TooComplex, World, join, limit
from lyma_server.executor.wrapper_tables import COMMAND_VARIABLES

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_STEPS = 6000
MAX_DEPTH = 24
MAX_INSIDE = 60
MAX_TEXTS = 40
DEADLINE_S = 2.0
MAX_ROUNDS = 200


def _is_pipe(operator: str) -> bool:
    return operator in ("|", "|&")


class Machine:
    """Follows one command to its end and collects in `invocations` what it would start."""

    def __init__(self) -> None:
        self.invocations: list[Invocation] = []
        self.stack: list[str] = []
        self._steps = 0
        self._texts = 0
        self._depth = 0
        self._inside = 0
        self._deadline = time.monotonic() + DEADLINE_S

    def step(self) -> None:
        """Count a step. Raises TooComplex when there were too many, or too much time has passed."""
        self._steps += 1
        if self._steps > MAX_STEPS or time.monotonic() > self._deadline:
            raise TooComplex

    def enter(self) -> None:
        """One command inside another begins. Raises TooComplex where they nest too deep."""
        self.step()
        self._inside += 1
        if self._inside > MAX_INSIDE:
            raise TooComplex

    def leave(self) -> None:
        self._inside -= 1

    def run_text(self, world: World, text: str, *, top: bool = False) -> Outcome:
        """Follow program text in the state `world`. Raises Unreadable where it does not parse."""
        self._texts += 1
        if self._texts > MAX_TEXTS or self._depth > MAX_DEPTH:
            raise TooComplex
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TooComplex
        statements = parse(text, trusted=not top, timeout_s=left)
        self._depth += 1
        try:
            return self.run(world, statements)
        finally:
            self._depth -= 1

    def run_shell(self, world: World, text: str) -> Outcome:
        """Follow program text in a shell of its own."""
        return self._contained(world.fork(), lambda inner: self.run_text(inner, text))

    def run_loose(self, world: World, text: str) -> Outcome:
        """The same for text of which it is not certain that a shell reads it: what does not parse does nothing."""
        try:
            return self.run_shell(world, text)
        except Unreadable as unreadable:
            if unreadable.syntax:
                return Outcome()
            raise

    def emit(self, world: World, argv: tuple[str, ...], *, program: str | None = None) -> None:
        """Write down that a program would be started."""
        self.step()
        name = program if program is not None else (program_name(argv[0]) if argv else "")
        scene = Scene(world.cwd, world.mounts, world.links, world.twins, world.files)
        self.invocations.append(
            Invocation(
                name, argv, scene, world.stdin, world.piped, world.redirections, environment=dict(world.variables)
            )
        )

    def note_environment(self, world: World, names: list[str]) -> None:
        """Follow commands in variables that some program runs, such as PAGER."""
        for name in names:
            for text in world.get(name) or () if name in COMMAND_VARIABLES else ():
                self.run_loose(world, text)
            if name in ("BASH_ENV", "ENV"):
                for path in world.get(name) or ():
                    for text in world.read(path) or ():
                        self.run_loose(world, text)

    def run(self, world: World, statements: tuple[Statement, ...]) -> Outcome:
        """Follow statements one after another."""
        outputs: list[Alternatives] = []
        outcome = Outcome()
        ends = False
        for statement in statements:
            outcome = self._statement(world, statement)
            outputs.append(outcome.output)
            ends = ends or outcome.ends
        return Outcome(join(outputs), outcome.status, ends)

    def substitute(self, world: World, statements: tuple[Statement, ...]) -> Alternatives:
        """What `$(statements)` prints."""
        return self._contained(world.fork(), lambda inner: self.run(inner, statements)).output

    def open_process(self, world: World, part: ProcessSubstitution) -> str:
        """The path that `<(...)` or `>(...)` stands for; its text is kept as that of a file."""
        path = f"/dev/fd/{63 + len(world.sinks) + len(world.files)}"
        if part.reads:
            world.files[path] = self.substitute(world, part.statements)
        else:
            world.sinks[path] = part.statements
        return path

    def save(self, world: World, path: str, content: Alternatives, *, append: bool = False) -> None:
        """Text that was written to a file: kept, since the file may be run, and followed at once where a shell reads it."""
        world.write(path, content, append=append)
        place = world.locate(path)
        if place.rpartition("/")[2] in STARTUP_FILES or "/.git/hooks/" in place:
            for text in content:
                self.run_loose(world, text)
        if place.startswith(CRON_FOLDERS):
            for text in content:
                recipes.cron_lines(self, world, text)
        self.deliver(world, path, content)

    def deliver(self, world: World, path: str, content: Alternatives) -> None:
        """Hand what was written to `>(...)` to the statements that read it."""
        statements = world.sinks.get(world.locate(path))
        if statements:
            inner = world.fork()
            inner.stdin, inner.piped = content, True
            self._contained(inner, lambda shell: self.run(shell, statements))

    def _contained(self, world: World, run: Callable[[World], Outcome]) -> Outcome:
        try:
            return run(world)
        except ShellEnds:
            return Outcome(status=False)

    def _branch(self, world: World, run: Callable[[World], Outcome]) -> Outcome:
        """A branch that may not be taken: it ends where the shell would end."""
        try:
            return run(world)
        except ShellEnds:
            return Outcome(status=False, ends=True)

    def _statement(self, world: World, statement: Statement) -> Outcome:
        self.step()
        command = statement.command
        if isinstance(command, Function):
            world.functions[command.name] = command.body
            return Outcome()
        if statement.background:
            forks.note_background(self, world, statement)
        with redirects.opened(self, world, statement.redirects) as opened:
            outcome = _RUN[type(command)](self, world, command) if command is not None else Outcome()
        outcome = opened.settle(outcome)
        if statement.negated and outcome.status is not None:
            return evolve(outcome, status=not outcome.status)
        return outcome

    def follow_group(self, world: World, node: Group) -> Outcome:
        if not node.subshell:
            return self.run(world, node.statements)
        outcome = self._contained(world.fork(), lambda inner: self.run(inner, node.statements))
        return evolve(outcome, ends=False)

    def follow_chain(self, world: World, node: Chain) -> Outcome:
        forks.note_pipeline(self, world, node)
        mark = len(self.invocations)
        if _is_pipe(node.rest[0][0]):
            return self._run_chain(world, node, self._stage(world.fork(), node.first), world.fork(), mark)
        before = world.cwd
        outcome = self._statement(world, node.first)
        failed = world.fork()
        failed.cwd = before
        return self._run_chain(world, node, outcome, failed, mark)

    def _run_chain(self, world: World, node: Chain, outcome: Outcome, failed: World, mark: int) -> Outcome:
        """`world` is the state where all went well so far, `failed` the one where something did not; from `mark` on are the
        invocations of the pipeline that is under way.
        """
        left, doubtful = node.first, False
        for operator, statement in node.rest:
            if _is_pipe(operator):
                outcome = self._pipe(world, outcome, statement, mark)
            elif operator == "&&":
                doubtful = doubtful or not outcome.assumed
                outcome = self._and(world, failed, outcome, (left, statement))
            else:
                outcome = self._or(world, failed, outcome, (left, statement))
            left = statement
            mark = mark if _is_pipe(operator) else len(self.invocations)
        if doubtful and not outcome.ends:
            after = world.cwd
            world.merge(failed)
            world.cwd = after
        return evolve(outcome, ends=False)

    def _stage(self, world: World, statement: Statement) -> Outcome:
        return self._contained(world, lambda inner: self._statement(inner, statement))

    def _pipe(self, world: World, outcome: Outcome, statement: Statement, mark: int) -> Outcome:
        inner = world.fork()
        inner.stdin, inner.piped = outcome.output, True
        middle = len(self.invocations)
        result = self._stage(inner, statement)
        readers = tuple(dict.fromkeys(invocation.program for invocation in self.invocations[middle:]))
        for index in range(mark, middle):
            known = self.invocations[index]
            self.invocations[index] = evolve(known, feeds=(*known.feeds, *readers))
        return evolve(result, ends=False, assumed=False)

    def _and(self, world: World, failed: World, outcome: Outcome, pair: tuple[Statement, Statement]) -> Outcome:
        left, statement = pair
        if outcome.status is False:
            return outcome
        conditions.refine(world, left, succeeded=True)
        failed.variables = dict(world.variables)
        conditions.refine(failed, left, succeeded=False)
        right = self._branch(world, lambda inner: self._statement(inner, statement))
        if right.ends:
            if outcome.status is True:
                raise ShellEnds
            conditions.adopt(world, failed)
            return Outcome(outcome.output)
        status = None if outcome.status is None else right.status
        return Outcome(join((outcome.output, right.output)), status, assumed=outcome.assumed and right.assumed)

    def _or(self, world: World, failed: World, outcome: Outcome, pair: tuple[Statement, Statement]) -> Outcome:
        left, statement = pair
        conditions.refine(failed, left, succeeded=False)
        conditions.refine(world, left, succeeded=True)
        right = self._branch(failed, lambda inner: self._statement(inner, statement))
        if right.ends:
            if outcome.status is False:
                raise ShellEnds
            return Outcome(outcome.output, outcome.status, assumed=True)
        if outcome.status is False:
            conditions.adopt(world, failed)
        elif outcome.status is None:
            world.merge(failed)
        output = limit((*outcome.output, *join((outcome.output, right.output))))
        return Outcome(output, True if outcome.status is True else None)

    def follow_if(self, world: World, node: If) -> Outcome:
        condition = self.run(world, node.condition)
        other = world.fork()
        then = Outcome(("",), ends=True)
        if condition.status is not False:
            conditions.refine(world, node.condition[-1], succeeded=True)
            then = self._branch(world, lambda inner: self.run(inner, node.then))
        conditions.refine(other, node.condition[-1], succeeded=False)
        otherwise = self._otherwise(other, node.otherwise)
        if then.ends and condition.status is True:
            raise ShellEnds
        if then.ends and not otherwise.ends:
            conditions.adopt(world, other)
        elif not otherwise.ends and condition.status is not True:
            world.merge(other)
        output = join((condition.output, limit((*then.output, *otherwise.output))))
        return Outcome(output, None, then.ends and otherwise.ends)

    def _otherwise(self, world: World, node: If | None) -> Outcome:
        if node is None:
            return Outcome()
        if node.condition:
            return self._branch(world, lambda inner: self.follow_if(inner, node))
        return self._branch(world, lambda inner: self.run(inner, node.then))

    def follow_while(self, world: World, node: While) -> Outcome:
        forks.note_loop(self, world, node)
        outputs: list[Alternatives] = []
        for round_number in range(MAX_ROUNDS):
            before = world.stdin
            condition = self.run(world, node.condition)
            if condition.status is node.until and condition.status is not None:
                break
            body = self._branch(world, lambda inner: self.run(inner, node.body))
            outputs += [condition.output, body.output]
            if world.stdin == before and round_number:
                break
        return Outcome(join(outputs))

    def follow_for(self, world: World, node: For) -> Outcome:
        expander = Expander(self, world)
        lists = expander.argv(node.items) if node.items is not None else [world.positional]
        items = dict.fromkeys(item for fields in lists for item in fields)
        outputs: list[Alternatives] = []
        for item in items:
            self.step()
            world.set(node.name, (item,))
            outputs.append(self._branch(world, lambda inner: self.run(inner, node.body)).output)
        return Outcome(join(outputs))

    def follow_counting(self, world: World, node: CountingFor) -> Outcome:
        forks.note_endless(self, world, node)
        expander = Expander(self, world)
        outputs: list[Alternatives] = []
        for expression in node.head[:1]:
            arithmetic.evaluate(expander, expression)
        for _ in range(MAX_ROUNDS):
            if len(node.head) > 1 and arithmetic.evaluate(expander, node.head[1]) == 0:
                break
            outputs.append(self._branch(world, lambda inner: self.run(inner, node.body)).output)
            if len(node.head) < 3 or arithmetic.evaluate(expander, node.head[2]) is None:
                break
        return Outcome(join(outputs))

    def follow_case(self, world: World, node: Case) -> Outcome:
        expander = Expander(self, world)
        subjects = expander.text(node.word)
        outputs: list[str] = []
        start, taken = world.fork(), 0
        for patterns, statements in node.arms:
            texts = [text for pattern in patterns for text in expander.pattern(pattern)]
            if not conditions.may_match(subjects, texts):
                continue
            branch = start.fork()
            outcome = self._branch(branch, partial(self._run_arm, statements))
            outputs += outcome.output
            if not outcome.ends:
                world.merge(branch) if taken else conditions.adopt(world, branch)
                taken += 1
            if conditions.must_match(subjects, texts):
                break
        return Outcome(limit(outputs) or ("",))

    def _run_arm(self, statements: tuple[Statement, ...], world: World) -> Outcome:
        return self.run(world, statements)

    def follow_evaluate(self, world: World, node: Evaluate) -> Outcome:
        expander = Expander(self, world)
        if node.test:
            return Outcome(status=conditions.test(expander, node.expressions[0]))
        for expression in node.expressions:
            arithmetic.evaluate(expander, expression)
        return Outcome()

    def follow_inner(self, world: World, node: Inner) -> Outcome:
        return self._statement(world, node.statement) if node.statement else Outcome()


_RUN: dict[type, Callable[[Machine, World, Any], Outcome]] = {
    Call: calls.call,
    Declare: calls.declare,
    Group: Machine.follow_group,
    Chain: Machine.follow_chain,
    If: Machine.follow_if,
    While: Machine.follow_while,
    For: Machine.follow_for,
    CountingFor: Machine.follow_counting,
    Case: Machine.follow_case,
    Evaluate: Machine.follow_evaluate,
    Inner: Machine.follow_inner,
}
