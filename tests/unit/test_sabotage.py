"""The rows of broken promises fit the code as it is: what each changes stands there once, and its tests exist."""

from __future__ import annotations

import ast

import pytest

from tests.sabotage.run import ROOT, promises


@pytest.mark.parametrize("promise", promises(), ids=lambda promise: promise.name)
def test_a_row_fits_the_code(promise):
    ast.parse(promise.broken(ROOT))
    assert promise.tests
    for test in promise.tests:
        file, _, name = test.partition("::")
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        functions = {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
        assert not name or name.partition("[")[0] in functions, test


def test_every_promise_of_safety_has_a_row():
    kinds = {promise.name.partition(":")[0] for promise in promises()}
    assert kinds >= {"verdict", "guard", "mask", "approval", "budget", "redaction", "commit point"}
