"""Fixtures for every test: `smollm_server`, a small real model, and `scripted_server`, real too but with fixed replies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lyma_server.errors import ConfigError
from lyma_server.router.providers.embedded_process import find_model, find_server
from tests.llama.scripted_model import scripted_model
from tests.llama.server import serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.llama.server import LlamaServer


@pytest.fixture(scope="session")
def smollm_model() -> Path:
    """The file of SmolLM2-135M-Instruct."""
    try:
        find_server()
        return find_model()
    except ConfigError as error:
        pytest.skip(error.message)


@pytest.fixture(scope="session")
def smollm_server(smollm_model: Path) -> Iterator[LlamaServer]:
    """A real small model; its words differ from machine to machine, so assert on the form and on the obvious."""
    with serving(smollm_model, "smollm", context=4096) as server:
        yield server


@pytest.fixture(scope="session")
def scripted_server() -> Iterator[LlamaServer]:
    """The replies of tests/llama/scripts.py, through a real server."""
    with serving(scripted_model(), "scripted") as server:
        yield server
