"""What the editor said of itself in `initialize`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lyma_server.editor.rpc.conversion import InvalidParams

if TYPE_CHECKING:
    from lyma_server.protocol.base import Json

ENCODINGS = ("utf-8", "utf-16", "utf-32")


class Client:
    """The editor. Before `initialize` it can do nothing."""

    def __init__(self, params: Json) -> None:
        """Raises InvalidParams where `params` are not those of an initialize request."""
        found = _object(params, "params")
        self.capabilities = _object(found.get("capabilities", {}), "params.capabilities")
        self.process_id = _optional(found.get("processId"), int, "params.processId", "an integer")
        self.folders = _folders(found)
        self.lyma = _lyma(found, self.capabilities)

    def get(self, path: str) -> Any:
        """A capability by its path, null where it is not there: `window.showDocument.support`."""
        value: Any = self.capabilities
        for name in path.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        return value

    def has(self, path: str) -> bool:
        """Whether a capability is there and true. An object counts as there."""
        return self.get(path) not in (None, False)

    @property
    def position_encoding(self) -> str:
        """The first of the client's encodings that we know; UTF-16 where it names none."""
        general = self.capabilities.get("general")
        offered = general.get("positionEncodings") if isinstance(general, dict) else None
        known = [name for name in offered if name in ENCODINGS] if isinstance(offered, list) else []
        return known[0] if known else "utf-16"

    @property
    def takes_events(self) -> bool:
        """Whether `lyma/event` may be sent. A client that never speaks of Lyma and still asks is not kept in the dark."""
        return self.lyma is None or self.lyma.get("events") is not None

    @property
    def asked_for_events(self) -> bool:
        """Whether the client says that it understands `lyma/event`."""
        return self.lyma is not None and self.lyma.get("events") is not None

    @property
    def asked_for_approvals(self) -> bool:
        """Whether the client says that it can show an approval."""
        return self.lyma is not None and self.lyma.get("approvals") is not None


def _lyma(params: dict[str, Json], capabilities: dict[str, Json]) -> dict[str, Json] | None:
    for holder in (capabilities.get("experimental"), params.get("initializationOptions")):
        if isinstance(holder, dict) and isinstance(holder.get("lyma"), dict):
            lyma: dict[str, Json] = holder["lyma"]
            return lyma
    return None


def _folders(params: dict[str, Json]) -> dict[str, None]:
    """URIs of the workspace folders, in order; a dict because a set forgets the order."""
    folders = params.get("workspaceFolders")
    if isinstance(folders, list):
        uris = [folder.get("uri") for folder in folders if isinstance(folder, dict)]
        return dict.fromkeys(uri for uri in uris if isinstance(uri, str))
    root = params.get("rootUri")
    if isinstance(root, str):
        return {root: None}
    path = params.get("rootPath")
    if isinstance(path, str) and path.startswith("/"):
        from lyma_server.editor.features.uris import to_uri

        return {to_uri(path): None}
    return {}


def _object(value: Json, path: str) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise InvalidParams(f"{path}: an object is expected")
    return value


def _optional(value: Json, kind: type, path: str, expected: str) -> Any:
    if value is not None and type(value) is not kind:
        raise InvalidParams(f"{path}: {expected} is expected")
    return value
