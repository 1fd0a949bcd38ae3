"""The agents that come with Lyma: each compiles to the hash that is written here, and does what it says."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from lyma_server.config.model import CeilingSettings
from lyma_server.factory.globs import is_allowed
from lyma_server.factory.reader import examine_folder
from tests.agents import EXAMPLES

HASHES = {
    "changelog-writer": "sha256:74ad70e11a385af75ad5029e47f12dad65ec91c8d5dde33b4afd9bc2a0391a86",
    "test-gap-finder": "sha256:8c4104e3b508ea701aa12f9ff6f6e7ab08c006c1e74689594e9743a52d0e5921",
    "todo-triage": "sha256:50eb8a35f9acff2cf2e6ee2b7a608b42100ad3306ce7002074b325586846a69d",
}
"""A change here asks every person who uses them to approve them anew."""

RESULTS = {
    "changelog-writer": {"added": 1, "changed": 0, "fixed": 2, "removed": 0, "unclear": ["wip"]},
    "test-gap-finder": {
        "gaps": [{"file": "a.py", "line": 3, "function": "f", "risk": "high", "first_test": "That it holds."}],
        "looked_at": 1,
    },
    "todo-triage": {
        "todos": [
            {"file": "a.py", "line": 3, "text": "TODO: x", "kind": "bug", "urgency": "now", "reason": "It loses data."}
        ]
    },
}


def compiled(name):
    found = examine_folder(EXAMPLES / name, CeilingSettings())
    assert found.diagnostics == ()
    return found.bundle


def test_all_of_them_are_here():
    assert {path.name for path in EXAMPLES.iterdir() if path.is_dir()} == set(HASHES)
    assert all(name in (EXAMPLES / "README.md").read_text() for name in HASHES)


@pytest.mark.parametrize("name", HASHES)
def test_an_example_has_its_hash_and_its_folders_name(name):
    bundle = compiled(name)
    assert (bundle.hash, bundle.name) == (HASHES[name], name)


@pytest.mark.parametrize("name", HASHES)
def test_a_result_fits_its_schema(name):
    schema = json.loads(compiled(name).text("schema/output.json"))
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid(RESULTS[name])
    assert not validator.is_valid({})
    assert not validator.is_valid({**RESULTS[name], "more": 1})


def test_examples_reach_what_they_need_and_no_more():
    spec = compiled("changelog-writer").facts["spec"]["files"]
    assert is_allowed("CHANGELOG.md", spec["write"], writing=True)
    assert not is_allowed("src/a.py", spec["read"], writing=False)
    spec = compiled("todo-triage").facts["spec"]["files"]
    assert is_allowed("src/deep/a.rs", spec["read"], writing=False)
    assert not is_allowed("src/.env", spec["read"], writing=False)
    assert spec["write"] == []


PROJECT = {
    "app/core.py": "def tested(x):\n    return x\n\n\ndef forgotten(x):\n    if x:\n        for y in x:\n            yield y\n\n\ndef _private():\n    pass\n",
    "app/box.py": "class Box:\n    def opened(self):\n        return 1\n\n    def closed(self):\n        return 2\n",
    "app/broken.py": "def f(:\n",
    "lib/other.py": "async def far(x):\n    return x\n",
    "tests/test_core.py": "from app.core import tested\nfrom app.box import Box\n\ndef test_it():\n    assert tested(1)\n    Box().opened()\n",
}


@pytest.fixture
def gaps(tmp_path):
    """The tool as the runner would load it, on a project of its own."""
    for name, text in PROJECT.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    names: dict = {"__name__": "tool"}
    exec(compile(compiled("test-gap-finder").text("tools/gaps.py"), "gaps.py", "exec"), names)
    names["ROOT"] = Path(tmp_path)
    return names["run"]


def test_the_gap_finder_finds_what_no_test_names(gaps):
    found = gaps({})
    assert [(gap["file"], gap["function"], gap["line"], gap["branches"]) for gap in found["gaps"]] == [
        ("app/core.py", "forgotten", 5, 2),
        ("app/box.py", "Box.closed", 5, 0),
        ("lib/other.py", "far", 1, 0),
    ]
    assert (found["found"], found["tests"], found["unreadable"]) == (3, 1, ["app/broken.py"])
    json.dumps(found, allow_nan=False)


def test_the_gap_finder_looks_where_it_is_told(gaps):
    assert [gap["function"] for gap in gaps({"folder": "lib"})["gaps"]] == ["far"]
    assert gaps({"most": 1})["found"] == 3
    assert len(gaps({"most": 1})["gaps"]) == 1
    assert gaps({"folder": "../.."})["found"] == 3
