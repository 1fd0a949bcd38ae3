"""The rows of broken promises fit the code as it is: what each changes stands there once, and its tests exist."""

from __future__ import annotations

import re

import pytest

from tests.sabotage.run import ROOT, promises


@pytest.mark.parametrize("promise", promises(), ids=lambda promise: promise.name)
def test_a_row_fits_the_code(promise):
    compile(promise.broken(ROOT), promise.file, "exec")
    assert promise.tests
    for test in promise.tests:
        file, _, name = test.partition("::")
        functions = re.findall(r"^(?:async )?def (\w+)", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
        assert not name or name.partition("[")[0] in functions, test


def test_every_promise_of_safety_has_a_row():
    kinds = {promise.name.partition(":")[0] for promise in promises()}
    assert kinds >= {
        *("verdict", "guard", "mask", "sockets", "files", "sandbox"),
        *("approval", "budget", "redaction", "secrets", "commit point"),
    }


REPORTS = [
    "codecompanion.nvim#3011",
    "claude-agent-acp#442",
    "copilot-cli#4561",
    "copilot-cli#4555",
    "agent-shell#511",
    "zed#62015",
    "openclaw#124738",
    "agent-client-protocol#1979",
    "codex#22181",
    "copilot-cli#845",
    "eca#422",
    "eca#283",
    "codex#26773",
    "pygls#173",
    "codex#21658",
    "neovim#33408",
    "kimi-cli#831",
    "lsp-ai#50",
    "avante.nvim#1621",
    "avante.nvim#1179",
    "opencode.nvim#207",
    "opencode#30765",
    "codex#2909",
    "pygls#517",
    "gptel#1448",
    "gp.nvim#29",
]


@pytest.mark.parametrize("report", REPORTS)
def test_what_went_wrong_in_an_editor_elsewhere_has_a_row(report):
    assert [promise for promise in promises() if f"/{report}" in promise.name]
