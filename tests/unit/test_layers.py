"""Who may import what, held over the syntax trees (the layers themselves are held by import-linter)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "lyma_server"
# A module that only these files (or folders) may import.
IMPORTERS = {
    "anthropic": ("router/providers/anthropic.py",),
    "openai": ("router/providers/openai.py",),
    "pygls": ("editor/",),
    "lsprotocol": ("editor/",),
    "subprocess": ("isolation/",),
    "multiprocessing": ("isolation/",),
    "pty": ("isolation/",),
    "tomlkit": ("config/",),
}


def imported(source: str) -> set[str]:
    """The top-level names of every module that `source` imports anywhere."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module.split(".")[0])
    return names


def intruders(module: str) -> list[str]:
    files = [(path, str(path.relative_to(PACKAGE))) for path in PACKAGE.rglob("*.py")]
    strangers = [(path, name) for path, name in files if not name.startswith(IMPORTERS[module])]
    return [name for path, name in strangers if module in imported(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("module", IMPORTERS)
def test_only_its_own_files_import_it(module: str) -> None:
    assert intruders(module) == []


def test_the_check_sees_imports_inside_functions() -> None:
    assert imported("def f():\n    import subprocess\n    from openai.x import y\n") == {"subprocess", "openai"}
