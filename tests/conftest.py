"""What every test stands on: this checkout for subprocesses, a home of its own, nobody's keys, and a watch over it."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import settings

pytest_plugins = ["tests.guards", "tests.llama.fixtures", "tests.skips"]

settings.register_profile("any machine", deadline=None)  # how long an example takes is the machine's affair
settings.load_profile("any machine")

ROOT = Path(__file__).resolve().parents[1]
FOREIGN = ("ANTHROPIC_", "OPENAI_", "DEEPSEEK_", "DASHSCOPE_", "MOONSHOT_", "LYMA_", "XDG_")
SURROUNDINGS = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "NO_COLOR")


def is_foreign(name: str) -> bool:
    """Whether a variable of whoever runs the tests could change what they see."""
    return name.startswith(FOREIGN) or name.endswith("_API_KEY") or name.upper() in SURROUNDINGS


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Subprocesses import this checkout; the home is fresh; no variable of the developer's reaches a test."""
    for name in list(os.environ):
        if is_foreign(name):
            monkeypatch.delenv(name)
    home = tmp_path_factory.getbasetemp() / f"home-{uuid4().hex}"
    home.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("LYMA_HOME", str(home / ".lyma"))


@pytest.fixture
def lyma_env(_own_environment: None) -> dict[str, str]:
    """The environment for a subprocess that runs this checkout."""
    return dict(os.environ)
