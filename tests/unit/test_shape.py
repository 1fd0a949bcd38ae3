"""The shape that every file keeps: small enough to be read in one sitting."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "lyma_server").rglob("*.py"))
FILE_LINES, BODY_LINES, NESTING = 400, 40, 4
NESTS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# Tables that are data, written as Python so that they are typed.
DATA_TABLES: set[str] = set()


def is_elif(parent: ast.AST | None, child: ast.AST) -> bool:
    """An `elif` is a branch of its `if`, not a level below it."""
    return isinstance(parent, ast.If) and isinstance(child, ast.If) and parent.orelse == [child]


def depth(node: ast.AST, parent: ast.AST | None = None) -> int:
    """How deep statements nest in `node`; a nested function starts again."""
    inner = (child for child in ast.iter_child_nodes(node) if not isinstance(child, FUNCTIONS))
    deepest = max((depth(child, node) for child in inner), default=0)
    return deepest + (isinstance(node, NESTS) and not is_elif(parent, node))


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the body without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def faults(source: str, name: str) -> list[str]:
    found = []
    lines = source.count("\n")
    if lines > FILE_LINES and name not in DATA_TABLES:
        found.append(f"{name} has {lines} lines, at most {FILE_LINES}")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, FUNCTIONS):
            where = f"{name}:{node.lineno} {node.name}"
            if body_lines(node) > BODY_LINES:
                found.append(f"{where} has a body of {body_lines(node)} lines, at most {BODY_LINES}")
            if depth(node) > NESTING:
                found.append(f"{where} nests {depth(node)} deep, at most {NESTING}")
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_file_keeps_the_shape(path: Path) -> None:
    assert faults(path.read_text(encoding="utf-8"), str(path.relative_to(ROOT))) == []


def test_the_check_finds_what_it_is_for() -> None:
    long_file = "x = 1\n" * (FILE_LINES + 1)
    long_body = "def f():\n" + "    x = 1\n" * (BODY_LINES + 1)
    levels = "".join("    " * level + "if x:\n" for level in range(1, NESTING + 2))
    deep = "def f():\n" + levels + "    " * (NESTING + 2) + "pass\n"
    flat = "def f():\n    if a:\n        pass\n" + "    elif a:\n        pass\n" * 9
    assert len(faults(long_file, "a.py")) == 1
    assert len(faults(long_body, "a.py")) == 1
    assert len(faults(deep, "a.py")) == 1
    assert faults(flat, "a.py") == []
