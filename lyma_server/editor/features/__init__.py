"""What an editor can ask for, a module a subject. Each registers its methods with pygls."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lyma_server.editor.server import LymaServer


def register(server: LymaServer) -> None:
    """Register all features."""
    from lyma_server.editor.features import ask, commands, documents, handshake, models, status

    for module in (handshake, documents, ask, status, models, commands):
        module.register(server)
