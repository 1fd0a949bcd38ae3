"""What is opened in an editor that does not play along."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from lyma_server.editor.features import transcript

if TYPE_CHECKING:
    import pytest


async def test_an_editor_that_never_answers_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: Any) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(transcript, "SHOWN_S", 0.01)
    server: Any = SimpleNamespace(
        client=SimpleNamespace(has=lambda _path: True), protocol=SimpleNamespace(send_request_async=never)
    )
    assert await asyncio.wait_for(transcript.show_file(server, Path("/a.md")), 5) is False
