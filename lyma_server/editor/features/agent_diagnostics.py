"""What is wrong with an agent.toml, told while it is written: by the compiler itself, which looks at the text as it is shown."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lyma_server.editor.features.agent_help import is_agent
from lyma_server.editor.features.positions import split_lines, units
from lyma_server.editor.features.uris import to_path, to_uri
from lyma_server.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lyma_server.config.model import CeilingSettings
    from lyma_server.editor.features.documents import Document
    from lyma_server.editor.server import LymaServer
    from lyma_server.factory.compile import Examined
    from lyma_server.factory.diagnostic import Diagnostic
    from lyma_server.protocol.base import Json

SETTLE_S: Final = 0.1
"""How long to wait for the next key."""

SPEC_FILE: Final = "agent.toml"
_ERROR: Final = 1


def look(server: LymaServer, uri: str) -> None:
    """Look at an agent soon, once however often it changes until then. `uri` may be of a file beside its agent.toml."""
    document = _agent_of(server, uri)
    if document is None or document.uri in server.looking_at:
        return
    server.looking_at.add(document.uri)
    server.protocol.run_in_background(_look(server, document.uri))


def forget(server: LymaServer, uri: str) -> None:
    """The editor shows it no longer: take back what was said."""
    for told in server.told_of.pop(uri, ()):
        _publish(server, told, None, [])


def _agent_of(server: LymaServer, uri: str) -> Document | None:
    """The open agent.toml that a document is, or that it lies beside."""
    document = server.documents.find(uri)
    if document is not None and uri.endswith(f"/{SPEC_FILE}"):
        return document
    try:
        path = to_path(uri)
    except UsageError:
        return None
    return server.documents.at(path.parent.parent / SPEC_FILE) if path.parent.name in {"tools", "schema"} else None


async def _look(server: LymaServer, uri: str) -> None:
    await asyncio.sleep(SETTLE_S)
    server.looking_at.discard(uri)
    document = server.documents.find(uri)
    if document is None or document.path is None:
        return
    path = Path(document.path)
    if not is_agent(path.parts, document.text):
        forget(server, uri)
        return
    ceiling = (await server.engine.open()).factory.ceiling
    version, text = document.version, document.text
    found = await asyncio.to_thread(examined, path.parent, text, ceiling)
    if server.documents.find(uri) is document and document.version == version:
        _tell(server, document, found.diagnostics)


def examined(folder: Path, text: str, ceiling: CeilingSettings) -> Examined:
    """Compile the text of an agent.toml with the files in its folder, if that is there already. Stores nothing."""
    from lyma_server.factory.compile import Source, examine
    from lyma_server.factory.reader import examine_folder

    content = text.encode("utf-8", "replace")
    try:
        return examine_folder(folder, ceiling, text=content)
    except UsageError:
        return examine(Source(content), ceiling)


def _tell(server: LymaServer, document: Document, found: Iterable[Diagnostic]) -> None:
    """Publish, by file; what was said of another file before and holds no longer is taken back."""
    assert document.path is not None  # noqa: S101 - `_look` has seen to it
    folder = Path(document.path).parent
    by_uri: dict[str, list[Json]] = {document.uri: []}
    for each in found:
        beside = folder / each.file
        own = each.file == SPEC_FILE or not beside.is_file()
        uri, text = (document.uri, document.text) if own else _beside(server, beside)
        line = each.line if each.file == SPEC_FILE or not own else _mention(text, each.file)
        by_uri.setdefault(uri, []).append(as_lsp(each, line, text, server.client.position_encoding))
    for uri in server.told_of.get(document.uri, set()) - set(by_uri):
        _publish(server, uri, None, [])
    server.told_of[document.uri] = set(by_uri)
    for uri, listed in by_uri.items():
        _publish(server, uri, document.version if uri == document.uri else None, listed)


def _beside(server: LymaServer, path: Path) -> tuple[str, str]:
    """The URI and the text of a file that lies beside agent.toml; the text only serves to find the end of a line."""
    document = server.documents.at(path)
    return (to_uri(path), "") if document is None else (document.uri, document.text)


def _mention(text: str, name: str) -> int | None:
    """The line, from 1, that names a file."""
    return next((number for number, line in enumerate(split_lines(text), 1) if f'"{name}"' in line), None)


def as_lsp(found: Diagnostic, line: int | None, text: str, encoding: str) -> Json:
    """A diagnostic on its whole line, which counts from 1; on the first where it has none."""
    number = max(0, (line or 1) - 1)
    lines = split_lines(text)
    content = lines[number].rstrip("\r\n") if number < len(lines) else ""
    start = units(content[: len(content) - len(content.lstrip())], encoding)
    return {
        "range": {
            "start": {"line": number, "character": start},
            "end": {"line": number, "character": max(start, units(content, encoding))},
        },
        "severity": _ERROR,
        "source": "lyma",
        "code": found.code,
        "message": f"{found.message}\nHint: {found.hint}.",
    }


def _publish(server: LymaServer, uri: str, version: int | None, listed: list[Json]) -> None:
    params: dict[str, Json] = {"uri": uri, "diagnostics": listed}
    if version is not None:
        params["version"] = version
    server.protocol.notify("textDocument/publishDiagnostics", params)
