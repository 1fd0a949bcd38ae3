"""Conditions: which branch is certainly not taken, and what a test that held says about a variable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lyma_server.executor.marks import SOMETHING, UNKNOWN, UNKNOWNS, is_known
from lyma_server.executor.parameters import matches
from lyma_server.executor.syntax import Call, DoubleQuoted, Evaluate, Expression, Literal, Parameter, Statement, Word

if TYPE_CHECKING:
    from lyma_server.executor.words import Expander
    from lyma_server.executor.world import Alternatives, World

_EXISTS = ("-d", "-e", "-f", "-s", "-r", "-w", "-x", "-L", "-h")


def decide(operator: str, left: str, right: str | None = None) -> bool | None:
    """The result of one test where it is certain, else None."""
    emptiness = {"-n": bool(left), "-z": not left}
    if operator in emptiness:
        if is_known(left) or (left and SOMETHING in left):
            return emptiness[operator]
        return emptiness[operator] if set(left) - UNKNOWNS else None
    if operator in _EXISTS:
        return False if left == "" else None
    if operator in ("=", "==", "!=") and right is not None and is_known(left) and is_known(right):
        return matches(left, right) == (operator != "!=")
    return None


def decide_all(operator: str, lefts: Alternatives, rights: Alternatives | None = None) -> bool | None:
    results = {decide(operator, left, right) for left in lefts for right in (rights or (None,))}
    return results.pop() if len(results) == 1 else None


def test(expander: Expander, expression: Expression) -> bool | None:
    """`[[ expression ]]`; substitutions inside it take place."""
    if isinstance(expression, Word):
        return decide_all("-n", expander.text(expression))
    name, operands = expression.operator, expression.operands
    if name in ("&&", "||", "!"):
        results = [test(expander, operand) for operand in operands]
        if name == "!":
            return None if results[0] is None else not results[0]
        certain = name == "||"
        if certain in results:
            return certain
        return None if None in results else not certain
    words = [operand for operand in operands if isinstance(operand, Word)]
    if len(words) != len(operands):
        return None
    texts = [expander.text(words[0]), *(expander.pattern(word) for word in words[1:])]
    return decide_all(name, texts[0], texts[1] if len(texts) > 1 else None)


def test_arguments(arguments: tuple[str, ...]) -> bool | None:
    """`[ ... ]` and `test` with plain arguments."""
    if arguments[:1] == ("!",):
        inner = test_arguments(arguments[1:])
        return None if inner is None else not inner
    if len(arguments) == 1:
        return decide("-n", arguments[0])
    if len(arguments) == 2:
        return decide(arguments[0], arguments[1])
    if len(arguments) == 3:
        return decide(arguments[1], arguments[0], arguments[2])
    return False if not arguments else None


def may_match(subjects: Alternatives, patterns: list[str]) -> bool:
    """Whether `case` may take the arm of these patterns."""
    if not all(map(is_known, (*subjects, *patterns))):
        return True
    return any(matches(subject, pattern) for subject in subjects for pattern in patterns)


def must_match(subjects: Alternatives, patterns: list[str]) -> bool:
    """Whether `case` certainly takes the arm of these patterns, so that no later one is looked at."""
    known = all(map(is_known, (*subjects, *patterns)))
    return known and all(any(matches(subject, pattern) for pattern in patterns) for subject in subjects)


def adopt(world: World, branch: World) -> None:
    """Go on in the state that a branch left."""
    world.variables, world.arrays, world.cwd = branch.variables, branch.arrays, branch.cwd
    world.functions, world.aliases, world.stdin = branch.functions, branch.aliases, branch.stdin


def refine(world: World, statement: Statement, *, succeeded: bool) -> None:
    """Keep of a tested variable only what agrees with the outcome of its test; where nothing does, it is something."""
    found = _tested(statement)
    if found is None or found[1] != (succeeded != statement.negated):
        return
    name = found[0]
    if name in world.arrays:
        return
    values = world.get(name) or ()
    kept = tuple(
        value.replace(UNKNOWN, SOMETHING, 1) if not set(value) - {UNKNOWN} else value for value in values if value
    )
    world.set(name, kept or (SOMETHING,))


def _tested(statement: Statement) -> tuple[str, bool] | None:
    """The variable that a test looks at, and whether success means that it is not empty."""
    command = statement.command
    if isinstance(command, Evaluate) and command.test:
        expression = command.expressions[0]
        if isinstance(expression, Word):
            return _named(expression, "-n")
        if len(expression.operands) == 1 and isinstance(expression.operands[0], Word):
            return _named(expression.operands[0], expression.operator)
        return None
    if isinstance(command, Call) and len(command.words) in (3, 4):
        words = [_literal(word) for word in command.words]
        if words[0] == "[" and words[-1] == "]":
            return _named(command.words[-2], words[1] or "-n" if len(words) == 4 else "-n")
        if words[0] == "test" and len(words) == 3:
            return _named(command.words[2], words[1] or "")
    return None


def _literal(word: Word) -> str | None:
    only = word.parts[0] if len(word.parts) == 1 else None
    return only.text if isinstance(only, Literal) else None


def _named(word: Word, operator: str) -> tuple[str, bool] | None:
    parts = word.parts
    while len(parts) == 1 and isinstance(parts[0], DoubleQuoted):
        parts = parts[0].parts
    only = parts[0] if len(parts) == 1 else None
    if (
        not isinstance(only, Parameter)
        or only.index is not None
        or only.indirect
        or only.operator not in ("", ":-", "-")
    ):
        return None
    if operator == "-z":
        return only.name, False
    return (only.name, True) if operator == "-n" or operator in _EXISTS else None
