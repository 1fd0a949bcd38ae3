"""What the editor sends along with a prompt, in the terms of the agent: columns count characters, whatever the client counts."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from lyma_server.editor.features.positions import split_lines, to_column
from lyma_server.errors import DocumentOutOfSync
from lyma_server.protocol.base import evolve
from lyma_server.protocol.messages import AskContext, AskParams, Position, Range

if TYPE_CHECKING:
    from collections.abc import Callable

    from lyma_server.editor.server import LymaServer


def with_plain_positions(server: LymaServer, params: AskParams) -> AskParams:
    """`params` with every column counted in characters (UTF-32), as Python counts. Those beyond the end of
    a line are at its end; those of documents that are not open stay as they are.
    """
    if params.context is None:
        return params
    return evolve(params, context=_context(params.context, _converter(server)))


def check_versions(server: LymaServer, context: AskContext | None) -> None:
    """Refuse an ask that speaks of another text than we have: its selections would name other lines.

    The client mends that: it sends the whole text (didChange, or didClose and didOpen) and asks again. Raises
    DocumentOutOfSync.
    """
    if context is None:
        return
    named = {each.uri: each.version for each in context.documents}
    if context.active is not None:
        named[context.active.uri] = context.active.version
    for uri, version in named.items():
        document = server.documents.find(uri)
        if document is not None and version not in (None, document.version):
            raise DocumentOutOfSync(
                f"Version {version} of {document.uri} was asked about and version {document.version} is here; "
                "send its whole text and ask again.",
                uri=document.uri,
                version=document.version,
            )


def _context(context: AskContext, convert: Callable[[str, Range], Range]) -> AskContext:
    active = context.active
    if active is not None:
        active = evolve(active, selections=tuple(convert(active.uri, found) for found in active.selections))
    diagnostics = tuple(evolve(found, range=convert(found.uri, found.range)) for found in context.diagnostics)
    return evolve(context, active=active, diagnostics=diagnostics)


def _converter(server: LymaServer) -> Callable[[str, Range], Range]:
    encoding = server.client.position_encoding

    @cache
    def lines(uri: str) -> list[str]:
        document = server.documents.find(uri)
        return [] if document is None else split_lines(document.text)

    def position(uri: str, found: Position) -> Position:
        known = lines(uri)
        if not 0 <= found.line < len(known):
            return found
        return Position(line=found.line, character=to_column(known[found.line], found.character, encoding))

    return lambda uri, found: Range(start=position(uri, found.start), end=position(uri, found.end))
