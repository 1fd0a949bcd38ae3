"""agent.toml in an editor: hover, completion, symbols and the code lenses that compile, approve and run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lyma_server.editor.features import agent_help
from lyma_server.editor.features.agent_diagnostics import SPEC_FILE, examined
from lyma_server.editor.features.grounds import workspace_for
from lyma_server.editor.features.positions import split_lines, to_character, to_column
from lyma_server.errors import LymaError

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

    from lsprotocol import types

    from lyma_server.editor.features.agent_help import Completion, Symbol
    from lyma_server.editor.features.documents import Document
    from lyma_server.editor.rpc.calls import Call
    from lyma_server.editor.server import LymaServer
    from lyma_server.factory.factory import Factory
    from lyma_server.protocol.base import Json

SHORT: Final = 13
"""Characters of a hash on a lens: `sha256:` and six digits."""

_COMPLETION_KINDS: Final = {"setting": 10, "section": 22, "value": 12}
_NAMESPACE, _PROPERTY = 3, 7


def hover(server: LymaServer, call: Call) -> Json | Coroutine[Any, Any, Json]:
    """What the setting under the cursor means."""
    document = agent_at(server, call.params.text_document.uri)
    return None if document is None else _hover(server, document, call.params.position)


async def _hover(server: LymaServer, document: Document, position: types.Position) -> Json:
    line, column = _place(server, document, position)
    ceiling = (await server.engine.open()).factory.ceiling
    found = agent_help.hover(document.text, line, column, ceiling)
    if found is None:
        return None
    span = _range(server, document, (line, found.start), (line, found.end))
    return {"contents": {"kind": "markdown", "value": found.text}, "range": span}


def complete(server: LymaServer, call: Call) -> Json | Coroutine[Any, Any, Json]:
    """What may stand at the cursor."""
    document = agent_at(server, call.params.text_document.uri)
    return None if document is None else _complete(server, document, call.params.position)


async def _complete(server: LymaServer, document: Document, position: types.Position) -> Json:
    line, column = _place(server, document, position)
    factory = (await server.engine.open()).factory
    beside = await asyncio.to_thread(_beside, factory, Path(document.path or ""))
    found = agent_help.complete(document.text, line, column, factory.ceiling, beside)
    return [_completion(server, document, each, (line, column)) for each in found]


def _completion(server: LymaServer, document: Document, found: Completion, at: tuple[int, int]) -> Json:
    span = _range(server, document, (at[0], found.start), at)
    return {
        "label": found.label,
        "kind": _COMPLETION_KINDS[found.kind],
        "detail": found.detail,
        "filterText": found.insert,
        "textEdit": {"range": span, "newText": found.insert},
    }


def _beside(factory: Factory, spec: Path) -> agent_help.Beside:
    files = [f"{name}/{path.name}" for name in ("tools", "schema") for path in sorted((spec.parent / name).glob("*.*"))]
    agents = []
    for hash_ in factory.store.hashes():
        try:
            agents.append((hash_, factory.store.load(hash_).name))
        except LymaError:
            continue
    return agent_help.Beside(tuple(files), tuple(agents))


def symbols(server: LymaServer, call: Call) -> Json:
    """Its tables and settings."""
    document = agent_at(server, call.params.text_document.uri)
    if document is None:
        return None
    found = agent_help.symbols(document.text)
    if server.client.has("textDocument.documentSymbol.hierarchicalDocumentSymbolSupport"):
        return [_symbol(server, document, each) for each in found]
    flat = [each for symbol in found for each in (symbol, *symbol.inside)]
    kinds = {True: _NAMESPACE, False: _PROPERTY}
    return [
        {
            "name": each.name,
            "kind": kinds[bool(each.inside)],
            "location": {"uri": document.uri, "range": _lines(server, document, each)},
        }
        for each in flat
    ]


def _symbol(server: LymaServer, document: Document, symbol: Symbol) -> Json:
    lines = _lines(server, document, symbol)
    first = _range(server, document, (symbol.first, 0), (symbol.first, _length(document, symbol.first)))
    return {
        "name": symbol.name,
        "kind": _NAMESPACE if symbol.inside else _PROPERTY,
        "range": lines,
        "selectionRange": first,
        "children": [_symbol(server, document, each) for each in symbol.inside],
    }


def code_lenses(server: LymaServer, call: Call) -> Json | Coroutine[Any, Any, Json]:
    """What can be done with it next."""
    document = agent_at(server, call.params.text_document.uri)
    return None if document is None else _code_lenses(server, document)


async def _code_lenses(server: LymaServer, document: Document) -> Json:
    span = _range(server, document, (0, 0), (0, 0))
    return [{"range": span, "command": command} for command in await agent_commands(server, document)]


async def agent_commands(server: LymaServer, document: Document) -> list[Json]:
    """The commands that lead on from an agent as it is shown."""
    core = await server.engine.open()
    folder = Path(document.path or "").parent
    found = await asyncio.to_thread(examined, folder, document.text, core.factory.ceiling)
    hash_ = None if found.bundle is None else found.bundle.hash
    try:
        _, root = workspace_for(server, core, None, document.uri)
    except LymaError:
        return []
    standing = None if hash_ is None else await asyncio.to_thread(standing_of, core.factory, hash_, root)
    return list(lens_commands(document.uri, hash_, standing))


def standing_of(factory: Factory, hash_: str, root: Path) -> str | None:
    """How a compiled agent stands; null where it is not compiled."""
    return factory.standing(hash_, root) if hash_ in factory.store.hashes() else None


def lens_commands(uri: str, hash_: str | None, standing: str | None) -> Iterator[Json]:
    """The commands of the lenses: each only begins what its name says; approving is for the person who is then asked."""
    yield {"title": "Compile", "command": "lyma.compile_agent", "arguments": [uri]}
    if hash_ is not None and standing in {"waiting", "expired", "untrusted"}:
        yield {"title": f"Approve {hash_[:SHORT]}…", "command": "lyma.approve", "arguments": [hash_]}
    if hash_ is not None and standing == "approved":
        yield {"title": "Run", "command": "lyma.run_compiled_agent", "arguments": [hash_]}


def agent_at(server: LymaServer, uri: str) -> Document | None:
    """The open agent.toml with this URI, null where it is none of Lyma's."""
    if not uri.endswith(f"/{SPEC_FILE}"):
        return None
    document = server.documents.find(uri)
    if document is None or document.path is None:
        return None
    return document if agent_help.is_agent(Path(document.path).parts, document.text) else None


def _place(server: LymaServer, document: Document, position: types.Position) -> tuple[int, int]:
    lines = split_lines(document.text)
    text = lines[position.line] if position.line < len(lines) else ""
    return position.line, to_column(text, position.character, server.client.position_encoding)


def _length(document: Document, line: int) -> int:
    lines = split_lines(document.text)
    return len(lines[line].rstrip("\r\n")) if line < len(lines) else 0


def _lines(server: LymaServer, document: Document, symbol: Symbol) -> Json:
    return _range(server, document, (symbol.first, 0), (symbol.last, _length(document, symbol.last)))


def _range(server: LymaServer, document: Document, start: tuple[int, int], end: tuple[int, int]) -> Json:
    lines = split_lines(document.text)

    def position(place: tuple[int, int]) -> Json:
        text = lines[place[0]] if place[0] < len(lines) else ""
        return {"line": place[0], "character": to_character(text, place[1], server.client.position_encoding)}

    return {"start": position(start), "end": position(end)}
