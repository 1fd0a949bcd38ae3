"""Answers as Markdown files, for editors that know LSP but not Lyma."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from typing import TYPE_CHECKING

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from lyma_server.editor.features.uris import to_uri

if TYPE_CHECKING:
    from pathlib import Path

    from lyma_server.editor.server import LymaServer

SHOWN_S = 10
"""How long an editor may take to open a file; one that never answers must not keep an answer from whoever asked."""


def append(folder: Path, name: str, text: str) -> Path:
    """Add `text` to a Markdown file that only its owner reads. Raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{name}.md"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
        file.write(text)
    return path


async def show_file(server: LymaServer, path: Path) -> bool:
    """Open a file in the editor; false where it cannot or will not."""
    if not server.client.has("window.showDocument.support"):
        return False
    params = types.ShowDocumentParams(uri=to_uri(path), take_focus=False)
    try:
        async with asyncio.timeout(SHOWN_S):
            answer = await server.protocol.send_request_async("window/showDocument", params)
    except (JsonRpcException, TimeoutError):
        return False
    return isinstance(answer, dict) and answer.get("success") is True


async def show_text(server: LymaServer, title: str, text: str) -> bool:
    """Write a text down and open it in the editor; false where nobody can see it."""
    folder = server.engine.home
    if folder is None or not server.client.has("window.showDocument.support"):
        return False
    with contextlib.suppress(OSError):
        path = append(folder / "transcripts", secrets.token_hex(8), f"# {title}\n\n{text}")
        return await show_file(server, path)
    return False


def show_message(server: LymaServer, text: str, kind: types.MessageType = types.MessageType.Info) -> None:
    """Show a sentence or two."""
    server.window_show_message(types.ShowMessageParams(type=kind, message=text))
