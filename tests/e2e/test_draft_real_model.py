"""A real, very small model drafts: what it writes is a sound agent, or it is refused in one sentence that offers the template."""

from __future__ import annotations

import os

import pytest

from tests.lyma import run_lyma

pytestmark = [pytest.mark.usefixtures("smollm_model"), pytest.mark.full]
TASK = "list the TODO comments of this project"


def test_what_the_model_on_board_drafts_is_valid_or_refused_with_the_template(tmp_path):
    done = run_lyma("draft-agent", "--provider", "embedded", TASK, cwd=tmp_path, env=dict(os.environ), timeout=300)
    written = list(tmp_path.glob(".lyma/agents/*/agent.toml"))
    if done.returncode == 0:
        assert [str(path) for path in written] == [done.stdout.strip()]
        compiled = run_lyma("compile-agent", str(written[0].parent), cwd=tmp_path)
        assert compiled.stdout.startswith("sha256:"), compiled.stderr
        return
    assert (done.returncode, done.stdout, written) == (1, "", [])
    assert "--from-template" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) < 20
