"""What every test stands on: this checkout for subprocesses, a home of its own, and nobody's keys."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4

import pytest

ROOT = Path(__file__).resolve().parents[1]
VENDORS = ("ANTHROPIC_", "OPENAI_", "DEEPSEEK_", "DASHSCOPE_", "MOONSHOT_", "LYMA_")


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Subprocesses import this checkout; Lyma's home is fresh; no variable of the developer's reaches a test."""
    for name in os.environ:
        if name.startswith(VENDORS):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("LYMA_HOME", str(tmp_path_factory.getbasetemp() / f"home-{uuid4().hex}"))
    for name in ("NO_COLOR", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
