"""How to start the real `lyma-server` against a stub provider."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.stub_provider import Request, StubProvider

COMMAND = (sys.executable, "-c", "from lyma_server.entry import server; server()", "--stdio")


def last_words(request: Request) -> str:
    """What the user said last."""
    content = [m["content"] for m in request.body["messages"] if m["role"] == "user"][-1]
    return content if isinstance(content, str) else content[-1]["text"]


def settings(stub: StubProvider, home: Path) -> dict[str, str]:
    """Variables that make `stub` the only provider."""
    return {
        "LYMA_HOME": str(home),
        "LYMA_ORDER": "local",
        "LYMA_PROVIDERS__LOCAL__BASE_URL": stub.openai_url,
        "LYMA_PROVIDERS__LOCAL__MODEL": "stub-model",
    }
