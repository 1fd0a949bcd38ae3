"""`&&`, `||` and pipelines: what is known where all went well, and where something did not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define, evolve

from lyma_server.executor import conditions, forks
from lyma_server.executor.world import Outcome, World, join, limit

if TYPE_CHECKING:
    from lyma_server.executor.evaluation import Machine
    from lyma_server.executor.syntax import Chain, Statement

_PIPES = ("|", "|&")


def follow_chain(machine: Machine, world: World, node: Chain) -> Outcome:
    """Follow statements that are joined, from left to right."""
    forks.note_pipeline(machine, world, node)
    course = _start(machine, world, node)
    for operator, statement in node.rest:
        if operator in _PIPES:
            course.pipe(statement)
        elif operator == "&&":
            course.also(statement)
        else:
            course.otherwise(statement)
        course.left = statement
    return course.end()


def _start(machine: Machine, world: World, node: Chain) -> _Course:
    mark = len(machine.invocations)
    if node.rest[0][0] in _PIPES:
        outcome = _stage(machine, world.fork(), node.first)
        return _Course(machine, world, world.fork(), outcome, node.first, mark)
    before = world.cwd
    outcome = machine.follow_statement(world, node.first)
    failed = world.fork()
    failed.cwd = before
    return _Course(machine, world, failed, outcome, node.first, mark)


def _stage(machine: Machine, world: World, statement: Statement) -> Outcome:
    return machine.follow_statement(world, statement)


@define
class _Course:
    """Where a chain stands. `world` is the state where all went well so far, `failed` the one where something did not;
    `left` is the statement before, and from `mark` on are the invocations of the pipeline under way.
    """

    machine: Machine
    world: World
    failed: World
    outcome: Outcome
    left: Statement
    mark: int
    doubtful: bool = False

    def pipe(self, statement: Statement) -> None:
        """`| statement`: it reads what was printed; the programs before it feed those in it."""
        inner = self.world.fork()
        inner.stdin, inner.piped = self.outcome.output, True
        invocations = self.machine.invocations
        middle = len(invocations)
        result = _stage(self.machine, inner, statement)
        readers = tuple(dict.fromkeys(invocation.program for invocation in invocations[middle:]))
        for index in range(self.mark, middle):
            known = invocations[index]
            invocations[index] = known._replace(feeds=(*known.feeds, *readers))
        self.outcome = evolve(result, ends=False, assumed=False)

    def also(self, statement: Statement) -> None:
        """`&& statement`: only where all went well. Where that certainly is not so, it is looked into and leaves nothing."""
        outcome = self.outcome
        self.doubtful = self.doubtful or not outcome.assumed
        self.mark = len(self.machine.invocations)
        if outcome.status is False:
            self.machine.look_into(self.world, self.left, (statement,))
            return
        conditions.refine(self.world, self.left, succeeded=True)
        self.failed.variables = dict(self.world.variables)
        conditions.refine(self.failed, self.left, succeeded=False)
        right = self.machine.follow_statement(self.world, statement)
        if right.ends:
            conditions.adopt(self.world, self.failed)
            self.outcome = Outcome(outcome.output)
            return
        status = None if outcome.status is None else right.status
        self.outcome = Outcome(join((outcome.output, right.output)), status, assumed=outcome.assumed and right.assumed)

    def otherwise(self, statement: Statement) -> None:
        """`|| statement`: where something failed; after it both states may be."""
        outcome = self.outcome
        self.mark = len(self.machine.invocations)
        conditions.refine(self.failed, self.left, succeeded=False)
        conditions.refine(self.world, self.left, succeeded=True)
        right = self.machine.follow_statement(self.failed, statement)
        if right.ends:
            self.outcome = Outcome(outcome.output, outcome.status, assumed=True)
            return
        if outcome.status is False:
            conditions.adopt(self.world, self.failed)
        elif outcome.status is None:
            self.world.merge(self.failed)
        output = limit((*outcome.output, *join((outcome.output, right.output))))
        self.outcome = Outcome(output, True if outcome.status is True else None)

    def end(self) -> Outcome:
        """What the chain leaves: the state of either outcome, in the folder where all went well."""
        if self.doubtful and not self.outcome.ends:
            after = self.world.cwd
            self.world.merge(self.failed)
            self.world.cwd = after
        return evolve(self.outcome, ends=False)
