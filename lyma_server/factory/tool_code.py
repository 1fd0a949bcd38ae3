"""The code of an agent's own tool, judged by its syntax tree. Nothing of it is ever imported or run here."""

from __future__ import annotations

import ast
import re
import sys
import warnings
from typing import TYPE_CHECKING, Final

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

LARGEST: Final = 64 << 10
"""Bytes."""

OLDEST_PYTHON: Final = (3, 11)
"""Whose syntax it must keep to."""

_ENCODING: Final = re.compile(r"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", re.ASCII)
_UTF8: Final = frozenset({"utf-8", "utf8", "u8"})
_EXAMPLE: Final = "write def run(args):"


@frozen
class CodeFault:
    """`line` counts from 1."""

    code: str
    problem: str
    hint: str
    line: int | None = None


def find_faults(text: str) -> list[CodeFault]:
    """All that is wrong with the code of a tool; empty where it holds. `text` has LF line ends."""
    declared = next((match[1] for line in text.split("\n")[:2] if (match := _ENCODING.match(line))), "utf-8")
    if declared.lower().replace("_", "-") not in _UTF8:
        return [CodeFault("not_utf8", "declares another encoding than UTF-8", "remove that comment", 1)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what Python says of odd escapes is no business of the compiler's caller
            tree = ast.parse(text, feature_version=OLDEST_PYTHON)
    except SyntaxError as error:
        return [CodeFault("bad_syntax", "is no valid Python", "mend the syntax", error.lineno)]
    except (ValueError, RecursionError, MemoryError, SystemError):  # the last by a parser in two threads at once
        return [CodeFault("bad_syntax", "is too involved for Python's parser", "make it simpler")]
    try:
        return sorted([*_run_faults(tree), *_import_faults(tree)], key=lambda fault: fault.line or 0)
    except RecursionError:
        return [CodeFault("bad_syntax", "nests too deeply", "make it simpler")]


def _run_faults(tree: ast.Module) -> Iterator[CodeFault]:
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "run"]
    others = [node for node in _module_level(tree) if "run" in _bound(node) and node not in functions]
    if len(functions) != 1 or others:
        line = next((node.lineno for node in (*others, *functions[1:])), None)
        yield CodeFault("no_run", "must define run(args) exactly once, as a plain function", _EXAMPLE, line)
        return
    function = functions[0]
    given = function.args
    plain = [argument.arg for argument in (*given.posonlyargs, *given.args)] == ["args"]
    more = given.vararg or given.kwarg or given.kwonlyargs or given.defaults or function.decorator_list
    if not plain or more:
        yield CodeFault("no_run", "must take args and nothing else", _EXAMPLE, function.lineno)
    if any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in _own_nodes(function)):
        yield CodeFault("no_run", "must return its result, not yield it", _EXAMPLE, function.lineno)


def _module_level(tree: ast.Module) -> Iterator[ast.stmt | ast.expr]:
    """Every node that runs when the module is loaded, in whatever branch."""
    for node in _own_nodes(tree):
        if isinstance(node, (ast.stmt, ast.expr)):
            yield node


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes inside a scope, without the insides of scopes in it."""
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)


def _bound(node: ast.AST) -> set[str]:
    """The names that a node binds by itself."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        return {node.id}
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return set()


def _import_faults(tree: ast.Module) -> Iterator[CodeFault]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = ["." if node.level else node.module or ""]
        else:
            continue
        foreign = [name for name in names if name.partition(".")[0] not in sys.stdlib_module_names]
        if foreign:
            what = "a module beside it" if foreign == ["."] else foreign[0][:60]
            hint = "use the standard library only"
            yield CodeFault("foreign_import", f"imports {what}", hint, node.lineno)
