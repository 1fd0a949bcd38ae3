"""The folder that a request about agents is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lyma_server.agent.bounds import real_path, user_homes, workspace_refusal
from lyma_server.editor.features.workspace import EditorWorkspace
from lyma_server.errors import UsageError
from lyma_server.protocol.messages import ActiveDocument, AskContext

if TYPE_CHECKING:
    from pathlib import Path

    from lyma_server.compose import Core
    from lyma_server.editor.server import LymaServer


def workspace_for(
    server: LymaServer, core: Core, root: str | None, uri: str | None = None
) -> tuple[EditorWorkspace, Path]:
    """The files as the editor sees them, and their root: the one named, else the one that owns `uri`, else the first.

    Raises UsageError where there is no folder, or where agents do not work in it.
    """
    active = None if uri is None else ActiveDocument(uri=uri)
    workspace = EditorWorkspace(server, AskContext(root=root, active=active))
    if workspace.root is None:
        raise UsageError("There is no folder for agents; open one, or name it as `root`.", field="root")
    folder = real_path(workspace.root)
    if workspace_refusal(folder, real_path(core.home.root), user_homes()) is not None:
        raise UsageError(f"Agents do not work in {folder}; open the folder of a project.", field="root")
    return workspace, folder
