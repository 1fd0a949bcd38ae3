"""The agents that come with Lyma, in the real sandbox with a model that says what it was told to say."""

from __future__ import annotations

import json
import subprocess

import pytest

from lyma_server.factory.sandbox import Sandbox
from tests.run_desk import Desk, own_staging, quick_disk
from tests.scripted_model import ScriptedModel, call, say
from tests.security.world import BWRAPS, LINUX
from tests.unit.test_factory_examples import RESULTS, compiled

__all__ = ["own_staging", "quick_disk"]

pytestmark = [LINUX, pytest.mark.skipif(not BWRAPS, reason="this kernel or container lets bubblewrap do nothing")]

NEW = "# Changes\n\n## Unreleased\n\n- A flag for colours.\n\n## 1.0\n\n- The first.\n"
OLD = "# Changes\n\n## 1.0\n\n- The first.\n"

SCRIPTS = {
    "changelog-writer": [
        call(("fs-read", {"path": "CHANGELOG.md"})),
        call(("fs-write", {"path": "CHANGELOG.md", "text": NEW})),
    ],
    "test-gap-finder": [call(("gaps", {})), call(("fs-read", {"path": "app/core.py", "first": 1, "last": 2}))],
    "todo-triage": [call(("fs-grep", {"pattern": "TODO|FIXME"})), call(("fs-list", {"glob": "app/*"}))],
}
TOLD = {
    "changelog-writer": ["1\t# Changes", "CHANGELOG.md was written"],
    "test-gap-finder": ['"function": "forgotten"', "1\tdef forgotten(x):"],
    "todo-triage": ["app/core.py:2:", "app/core.py"],
}


@pytest.mark.parametrize("name", SCRIPTS)
async def test_an_example_does_what_it_is_for(tmp_path, name):
    desk = Desk(tmp_path, ScriptedModel(*SCRIPTS[name], say(json.dumps(RESULTS[name]))), Sandbox())
    files = {
        "CHANGELOG.md": OLD,
        "app/core.py": "def forgotten(x):\n    return x  # TODO: why?\n",
        "tests/test_x.py": "",
    }
    desk.write(files)
    result = await desk.run(compiled(name), "fix: colours\nfeat: a flag for colours\n")
    assert (result.status, result.output) == ("ok", RESULTS[name])
    told = [request.messages[-1].blocks[0] for request in desk.model.requests[1:]]
    assert not any(block.is_error for block in told), told
    assert all(part in block.text for part, block in zip(TOLD[name], told, strict=True))
    if name == "changelog-writer":
        subprocess.run(["git", "apply", str(result.patch)], cwd=desk.workspace, check=True)
        assert (desk.workspace / "CHANGELOG.md").read_text() == NEW
    else:
        assert result.changes == ()
