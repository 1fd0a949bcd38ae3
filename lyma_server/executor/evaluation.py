"""Following a command: each construct of the shell, with what it would leave behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import evolve

from lyma_server.executor import arithmetic, calls, chains, conditions, forks, recipes, redirects
from lyma_server.executor.budget import Budget
from lyma_server.executor.invocation import Invocation, Scene, program_name
from lyma_server.executor.marks import SOMETHING
from lyma_server.executor.scripts_on_disk import DISK_SECONDS, LENIENT, certain
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
    Literal,
    ProcessSubstitution,
    Statement,
    While,
)
from lyma_server.executor.words import Expander
from lyma_server.executor.world import Alternatives, Outcome, World, join, limit
from lyma_server.executor.wrapper_tables import COMMAND_VARIABLES

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_ROUNDS = 200


class Machine:
    """Follows one command to its end and collects in `invocations` what it would start."""

    def __init__(self, budget: Budget | None = None) -> None:
        self.invocations: list[Invocation] = []
        self.stack: list[str] = []
        self.budget = budget or Budget()
        self.disk_left_s = DISK_SECONDS

    def step(self) -> None:
        """Count a step. Raises TooComplex where there were too many."""
        self.budget.step()

    def enter(self) -> None:
        """One command inside another begins. Raises TooComplex where they nest too deep."""
        self.budget.enter()

    def leave(self) -> None:
        """It has ended."""
        self.budget.leave()

    def run_text(self, world: World, text: str, *, top: bool = False) -> Outcome:
        """Follow program text in the state `world`. Raises Unreadable where it does not parse."""
        with self.budget.text() as left_s:
            return self.run(world, parse(text if top else text.replace("\0", ""), trusted=not top, timeout_s=left_s))

    def run_shell(self, world: World, text: str) -> Outcome:
        """Follow program text in a shell of its own."""
        return self.run_text(world.fork(), text)

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
        if LENIENT in world.options:
            argv = certain(argv)
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
                self.run_loose(world, text.lstrip("|-"))  # less(1): LESSOPEN="|program %s", and "|-" and "||" as well
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
            outcome = self.follow_statement(world, statement)
            outputs.append(outcome.output)
            ends = ends or outcome.ends
        return Outcome(join(outputs), outcome.status, ends)

    def substitute(self, world: World, statements: tuple[Statement, ...]) -> Alternatives:
        """What `$(statements)` prints; `$(<file)` prints a file without a program."""
        inner = world.fork()
        output = self.run(inner, statements).output
        printed = redirects.printed_files(self, inner, statements[0]) if len(statements) == 1 else ()
        return limit(printed) if printed else output

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
            self.run(inner, statements)

    def follow_statement(self, world: World, statement: Statement) -> Outcome:
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
        outcome = self.run(world.fork(), node.statements)
        return evolve(outcome, ends=False)

    def follow_if(self, world: World, node: If) -> Outcome:
        condition = self.run(world, node.condition)
        other = world.fork()
        tested = node.condition[-1]
        if condition.status is False:
            self.look_into(world, tested, node.then)
            then = Outcome(ends=True)
        else:
            conditions.refine(world, tested, succeeded=True)
            then = self.run(world, node.then)
        conditions.refine(other, tested, succeeded=False)
        otherwise = self._otherwise(other, node.otherwise)
        if then.ends and not otherwise.ends:
            conditions.adopt(world, other)
        elif not otherwise.ends and condition.status is not True:
            world.merge(other)
        output = join((condition.output, limit((*then.output, *otherwise.output))))
        return Outcome(output, None, then.ends and otherwise.ends)

    def look_into(self, world: World, tested: Statement, statements: tuple[Statement, ...]) -> None:
        """Follow what is not taken, as far as is known here, for what it would start. It leaves nothing behind.

        Something that is not followed may have set what was tested, so the test is believed rather than what is known.
        """
        inner = world.fork()
        conditions.refine(inner, tested, succeeded=True)
        self.run(inner, statements)

    def _otherwise(self, world: World, node: If | None) -> Outcome:
        if node is None:
            return Outcome()
        return self.follow_if(world, node) if node.condition else self.run(world, node.then)

    def follow_while(self, world: World, node: While) -> Outcome:
        forks.note_loop(self, world, node)
        outputs: list[Alternatives] = []
        known = dict(world.variables)
        for round_number in range(MAX_ROUNDS):
            before = world.stdin
            condition = self.run(world, node.condition)
            if condition.status is node.until and condition.status is not None:
                if not round_number:
                    self._enter_once(world, known, node)
                break
            body = self.run(world, node.body)
            outputs += [condition.output, body.output]
            if world.stdin == before and round_number:
                break
        return Outcome(join(outputs))

    def _enter_once(self, world: World, known: dict[str, Alternatives], node: While) -> None:
        """Look into a loop that is not entered; what its head has set is something there."""
        inner = world.fork()
        for name, value in world.variables.items():
            if known.get(name) != value:
                inner.set(name, (SOMETHING,))
        conditions.refine(inner, node.condition[-1], succeeded=not node.until)
        self.run(inner, node.body)

    def follow_for(self, world: World, node: For) -> Outcome:
        expander = Expander(self, world)
        lists = expander.argv(node.items) if node.items is not None else [world.positional]
        items = dict.fromkeys(item for fields in lists for item in fields)
        outputs: list[Alternatives] = []
        for item in items:
            self.step()
            world.set(node.name, (item,))
            outputs.append(self.run(world, node.body).output)
        if not items:
            inner = world.fork()
            inner.set(node.name, (SOMETHING,))
            self.run(inner, node.body)
        return Outcome(join(outputs))

    def follow_counting(self, world: World, node: CountingFor) -> Outcome:
        forks.note_endless(self, world, node)
        expander = Expander(self, world)
        outputs: list[Alternatives] = []
        for expression in node.head[:1]:
            arithmetic.evaluate(expander, expression)
        for round_number in range(MAX_ROUNDS):
            if len(node.head) > 1 and arithmetic.evaluate(expander, node.head[1]) == 0:
                if not round_number:
                    self.run(world.fork(), node.body)
                break
            outputs.append(self.run(world, node.body).output)
            if len(node.head) < 3 or arithmetic.evaluate(expander, node.head[2]) is None:
                break
        return Outcome(join(outputs))

    def follow_case(self, world: World, node: Case) -> Outcome:
        expander = Expander(self, world)
        subjects = expander.text(node.word)
        literal = all(isinstance(part, Literal) for part in node.word.parts)
        outputs: list[str] = []
        start, taken, settled = world.fork(), 0, False
        for patterns, statements in node.arms:
            texts = [text for pattern in patterns for text in expander.pattern(pattern)]
            branch = start.fork()
            if settled or not conditions.may_match(subjects, texts):
                if not literal:
                    self.run(branch, statements)
                continue
            outcome = self.run(branch, statements)
            outputs += outcome.output
            if not outcome.ends:
                world.merge(branch) if taken else conditions.adopt(world, branch)
                taken += 1
            settled = conditions.must_match(subjects, texts)
        return Outcome(limit(outputs) or ("",))

    def follow_evaluate(self, world: World, node: Evaluate) -> Outcome:
        expander = Expander(self, world)
        if node.test:
            return Outcome(status=conditions.test(expander, node.expressions[0]))
        for expression in node.expressions:
            arithmetic.evaluate(expander, expression)
        return Outcome()

    def follow_inner(self, world: World, node: Inner) -> Outcome:
        return self.follow_statement(world, node.statement) if node.statement else Outcome()


_RUN: dict[type, Callable[[Machine, World, Any], Outcome]] = {
    Call: calls.call,
    Declare: calls.declare,
    Group: Machine.follow_group,
    Chain: chains.follow_chain,
    If: Machine.follow_if,
    While: Machine.follow_while,
    For: Machine.follow_for,
    CountingFor: Machine.follow_counting,
    Case: Machine.follow_case,
    Evaluate: Machine.follow_evaluate,
    Inner: Machine.follow_inner,
}
