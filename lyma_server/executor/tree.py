"""shfmt's JSON into the tree of `syntax.py`. What is not known here is an error, never ignored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from lyma_server.executor.syntax import (
    Arithmetic,
    Assignment,
    Call,
    Case,
    Chain,
    Command,
    CountingFor,
    Declare,
    DoubleQuoted,
    Evaluate,
    Expression,
    ExtendedGlob,
    For,
    Function,
    Group,
    If,
    Inner,
    Literal,
    Operation,
    Parameter,
    Part,
    ProcessSubstitution,
    Redirect,
    Statement,
    Substitution,
    While,
    Word,
)

if TYPE_CHECKING:
    from collections.abc import Callable

Node: TypeAlias = dict[str, Any]


class UnknownNode(Exception):
    """shfmt produced a node that this module has no row for."""


def _value(node: Node | None) -> str:
    return str(node.get("Value", "")) if node else ""


def statements(nodes: list[Node] | None) -> tuple[Statement, ...]:
    return tuple(_statement(node) for node in nodes or ())


def _statement(node: Node) -> Statement:
    return Statement(
        command=_command(node["Cmd"]) if "Cmd" in node else None,
        redirects=tuple(_redirect(redirect) for redirect in node.get("Redirs", ())),
        negated=bool(node.get("Negated")),
        background=bool(node.get("Background")),
    )


def _redirect(node: Node) -> Redirect:
    body, target = node.get("Hdoc"), _word(node["Word"])
    quoted = any(not isinstance(part, Literal) or part.quoted or "\\" in part.text for part in target.parts)
    heredoc = _word(body) if body else None
    if node["Op"] in ("<<", "<<-") and heredoc is None:
        heredoc = Word(())
    return Redirect(node["Op"], target, _value(node.get("N")), heredoc, quoted)


def _word(node: Node | None) -> Word:
    return Word(tuple(_part(part) for part in (node or {}).get("Parts", ())))


def _words(nodes: list[Node] | None) -> tuple[Word, ...]:
    return tuple(_word(node) for node in nodes or ())


def _literal(node: Node) -> Part:
    return Literal(_value(node))


def _single_quoted(node: Node) -> Part:
    text = _value(node)
    if node.get("Dollar"):
        from lyma_server.executor.escapes import decode_ansi

        text = decode_ansi(text)
    return Literal(text, quoted=True)


def _parameter(node: Node) -> Part:
    expansion = node.get("Exp") or {}
    operator = expansion.get("Op", "")
    operands: tuple[Word | None, ...] = (_optional(expansion.get("Word")),)
    if replacement := node.get("Repl"):
        operator = "//" if replacement.get("All") else "/"
        operands = (_optional(replacement.get("Orig")), _optional(replacement.get("With")))
    elif cut := node.get("Slice"):
        operator, operands = "slice", (_as_word(cut.get("Offset")), _as_word(cut.get("Length")))
    elif node.get("Names"):
        operator, operands = "names", ()
    elif node.get("Length") or node.get("Width"):
        operator, operands = "length", ()
    index = node.get("Index")
    name = _value(node.get("Param"))
    if nested := node.get("NestedParam"):
        raise UnknownNode(str(nested.get("Type")))
    return Parameter(
        name=name,
        index=_expression(index) if index else None,
        indirect=bool(node.get("Excl")) and not node.get("Names"),
        operator=operator,
        words=operands,
        short=bool(node.get("Short")),
    )


def _optional(node: Node | None) -> Word | None:
    return _word(node) if node else None


def _as_word(node: Node | None) -> Word | None:
    """An arithmetic expression where only a number matters."""
    if not node:
        return None
    return _word(node) if node.get("Type") == "Word" else Word((Arithmetic(_expression(node)),))


_PARTS: dict[str, Callable[[Node], Part]] = {
    "Lit": _literal,
    "SglQuoted": _single_quoted,
    "DblQuoted": lambda node: DoubleQuoted(_word(node).parts),
    "CmdSubst": lambda node: Substitution(statements(node.get("Stmts"))),
    "ProcSubst": lambda node: ProcessSubstitution(node.get("Op") != ">(", statements(node.get("Stmts"))),
    "ArithmExp": lambda node: Arithmetic(_expression(node["X"])),
    "ExtGlob": lambda node: ExtendedGlob(node["Op"], _value(node.get("Pattern"))),
    "ParamExp": _parameter,
}


def _part(node: Node) -> Part:
    build = _PARTS.get(node["Type"])
    if build is None:
        raise UnknownNode(node["Type"])
    return build(node)


def _expression(node: Node) -> Expression:
    kind = node.get("Type", "Word")
    if kind == "Word":
        return _word(node)
    if kind in ("ParenArithm", "ParenTest"):
        return _expression(node["X"])
    if kind in ("UnaryArithm", "UnaryTest", "BinaryArithm", "BinaryTest"):
        operands = [_expression(node[side]) for side in ("X", "Y") if node.get(side)]
        return Operation(node["Op"], tuple(operands))
    raise UnknownNode(kind)


def _assignment(node: Node) -> Assignment:
    array, index = node.get("Array"), node.get("Index")
    return Assignment(
        name=_value(node.get("Name")),
        value=_optional(node.get("Value")),
        items=tuple(_word(item.get("Value")) for item in array.get("Elems", ())) if array is not None else None,
        keys=tuple(
            _expression(item["Index"]) if item.get("Index") else None for item in (array or {}).get("Elems", ())
        ),
        index=_expression(index) if index else None,
        append=bool(node.get("Append")),
        naked=bool(node.get("Naked")),
    )


def _if(node: Node) -> If:
    otherwise = node.get("Else")
    return If(statements(node.get("Cond")), statements(node.get("Then")), _if(otherwise) if otherwise else None)


def _for(node: Node) -> Command:
    loop, body = node["Loop"], statements(node.get("Do"))
    if loop["Type"] == "CStyleLoop":
        return CountingFor(tuple(_expression(loop[p]) for p in ("Init", "Cond", "Post") if loop.get(p)), body)
    return For(_value(loop["Name"]), _words(loop["Items"]) if "Items" in loop else None, body)


def _case(node: Node) -> Command:
    arms = tuple((_words(arm.get("Patterns")), statements(arm.get("Stmts"))) for arm in node.get("Items", ()))
    return Case(_word(node["Word"]), arms)


def _chain(node: Node) -> Command:
    """`a && b | c`: shfmt nests to the left, as deep as the chain is long, so this walks instead of recursing."""
    right: list[tuple[str, Statement]] = []
    left = node
    while (first := left["X"]).get("Cmd", {}).get("Type") == "BinaryCmd" and set(first) <= {
        "Cmd",
        "Pos",
        "End",
        "Position",
    }:
        right.append((left["Op"], _statement(left["Y"])))
        left = first["Cmd"]
    right.append((left["Op"], _statement(left["Y"])))
    return Chain(_statement(left["X"]), tuple(reversed(right)))


def _inner(node: Node) -> Command:
    statement = node.get("Stmt")
    return Inner(_statement(statement) if statement else None)


_COMMANDS: dict[str, Callable[[Node], Command]] = {
    "CallExpr": lambda node: Call(tuple(map(_assignment, node.get("Assigns", ()))), _words(node.get("Args"))),
    "Block": lambda node: Group(statements(node.get("Stmts"))),
    "Subshell": lambda node: Group(statements(node.get("Stmts")), subshell=True),
    "IfClause": _if,
    "WhileClause": lambda node: While(
        statements(node.get("Cond")), statements(node.get("Do")), bool(node.get("Until"))
    ),
    "ForClause": _for,
    "CaseClause": _case,
    "FuncDecl": lambda node: Function(_value(node["Name"]), _statement(node["Body"])),
    "BinaryCmd": _chain,
    "ArithmCmd": lambda node: Evaluate((_expression(node["X"]),)),
    "LetClause": lambda node: Evaluate(tuple(map(_expression, node["Exprs"]))),
    "TestClause": lambda node: Evaluate((_expression(node["X"]),), test=True),
    "DeclClause": lambda node: Declare(_value(node["Variant"]), tuple(map(_assignment, node.get("Args", ())))),
    "TimeClause": _inner,
    "CoprocClause": _inner,
}


def _command(node: Node) -> Command:
    build = _COMMANDS.get(node["Type"])
    if build is None:
        raise UnknownNode(node["Type"])
    return build(node)
