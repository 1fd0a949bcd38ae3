"""The small typed tree that the evaluation works on. Every field that the evaluation does not need is left out."""

from __future__ import annotations

from typing import TypeAlias

from attrs import frozen


@frozen
class Literal:
    """Text as written; `raw` may hold backslashes, `quoted` text means itself."""

    text: str
    quoted: bool = False


@frozen
class DoubleQuoted:
    parts: tuple[Part, ...]


@frozen
class Substitution:
    """`$(...)`."""

    statements: tuple[Statement, ...]


@frozen
class ProcessSubstitution:
    """`<(...)` or `>(...)`."""

    reads: bool
    statements: tuple[Statement, ...]


@frozen
class Arithmetic:
    """`$((...))`."""

    expression: Expression


@frozen
class ExtendedGlob:
    """`@(a|b)`, `!(x)` and the like."""

    operator: str
    pattern: str


@frozen
class Parameter:
    """`$x` and `${x...}`. `operator` is one of `:-`, `#`, `%%`, `^^`, `@`, `/`, `//`, `slice`, `length`, `names`, or
    empty; `words` are its operands. `short` is the form without braces.
    """

    name: str
    index: Expression | None = None
    indirect: bool = False
    operator: str = ""
    words: tuple[Word | None, ...] = ()
    short: bool = False


@frozen
class Word:
    parts: tuple[Part, ...]


@frozen
class Operation:
    """An operator of arithmetic or of a test with its operands."""

    operator: str
    operands: tuple[Expression, ...]


@frozen
class Assignment:
    """`name[index]=value`, `name+=(items)`. `naked` is a word of `declare` that is no assignment."""

    name: str
    value: Word | None = None
    items: tuple[Word, ...] | None = None
    keys: tuple[Expression | None, ...] = ()
    index: Expression | None = None
    append: bool = False
    naked: bool = False


@frozen
class Redirect:
    operator: str
    target: Word
    descriptor: str = ""
    heredoc: Word | None = None
    literal: bool = False


@frozen
class Statement:
    command: Command | None
    redirects: tuple[Redirect, ...] = ()
    negated: bool = False
    background: bool = False


@frozen
class Call:
    assignments: tuple[Assignment, ...]
    words: tuple[Word, ...]


@frozen
class Group:
    """`{ ...; }`, or `( ... )` where `subshell`."""

    statements: tuple[Statement, ...]
    subshell: bool = False


@frozen
class If:
    condition: tuple[Statement, ...]
    then: tuple[Statement, ...]
    otherwise: If | None = None


@frozen
class While:
    """`while`, or `until` where `until`."""

    condition: tuple[Statement, ...]
    body: tuple[Statement, ...]
    until: bool = False


@frozen
class For:
    """`items` None means the positional parameters."""

    name: str
    items: tuple[Word, ...] | None
    body: tuple[Statement, ...]


@frozen
class CountingFor:
    head: tuple[Expression, ...]
    body: tuple[Statement, ...]


@frozen
class Case:
    word: Word
    arms: tuple[tuple[tuple[Word, ...], tuple[Statement, ...]], ...]


@frozen
class Function:
    name: str
    body: Statement


@frozen
class Chain:
    """Statements joined by `&&`, `||`, `|` or `|&`, which bind to the left as they come."""

    first: Statement
    rest: tuple[tuple[str, Statement], ...]


@frozen
class Evaluate:
    """`((...))`, `let` and `[[ ... ]]`."""

    expressions: tuple[Expression, ...]
    test: bool = False


@frozen
class Declare:
    variant: str
    arguments: tuple[Assignment, ...]


@frozen
class Inner:
    """`time` and `coproc` with what they run."""

    statement: Statement | None


Part: TypeAlias = Literal | DoubleQuoted | Substitution | ProcessSubstitution | Arithmetic | ExtendedGlob | Parameter
Expression: TypeAlias = Word | Operation
Command: TypeAlias = (
    Call | Group | If | While | For | CountingFor | Case | Function | Chain | Evaluate | Declare | Inner
)
