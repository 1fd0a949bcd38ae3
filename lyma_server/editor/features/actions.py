"""Code actions: fix a diagnostic, rewrite what is selected.

An action is offered at once and the model is asked when the editor resolves it. An editor that does not resolve gets a
command instead, whose turn edits the file with its tools.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from attrs import asdict, frozen
from pygls.exceptions import JsonRpcException

from lyma_server.agent.lines import line_end, with_line_end
from lyma_server.editor.features.ask import start_when_ready
from lyma_server.editor.features.edits import workspace_edit
from lyma_server.editor.features.positions import split_lines
from lyma_server.editor.rpc.conversion import InvalidParams
from lyma_server.errors import LymaError
from lyma_server.protocol.convert import unstructure
from lyma_server.protocol.messages import (
    ActiveDocument,
    AskContext,
    AskParams,
    Diagnostic,
    FileBlock,
    Position,
    Range,
    TextBlock,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

    from lsprotocol import types

    from lyma_server.editor.features.ask import Conversation
    from lyma_server.editor.features.documents import Document
    from lyma_server.editor.rpc.calls import Call
    from lyma_server.editor.server import LymaServer
    from lyma_server.protocol.base import Json

QUICK_FIX: Final = "quickfix.lyma"
REWRITE: Final = "refactor.rewrite.lyma"
AGENT: Final = "source.lyma"
CONTENT_MODIFIED: Final = -32801
REQUEST_CANCELLED: Final = -32800
MOST_FIXES: Final = 5
NEARBY: Final = 3
"""Lines around a diagnostic that a fix may change."""
SEEN: Final = 60
"""Lines around these that the model sees."""
_TITLE: Final = 60
_FENCED: Final = re.compile(r"^(`{3,}|~{3,})[^\n]*\n(.*?)^\1[ \t]*$", re.DOTALL | re.MULTILINE)
FORM: Final = (
    "Answer with the whole new text of lines {first} to {last} in one fenced block, with their indentation, and nothing "
    "else. The lines outside of them stay as they are."
)
FIX: Final = "Fix this problem at line {line} of {uri}: {message}\n"
IMPROVE: Final = (
    "Rewrite lines {first} to {last} of {uri}. Do what comments in them ask for, if any do; else make them simpler and "
    "clearer without changing what they do.\n"
)


@frozen
class Wish:
    """What an action would do, kept in its `data` until it is resolved. Lines count from 0, `last` is inclusive."""

    uri: str
    version: int
    first: int
    last: int
    message: str | None = None
    line: int = 0


def code_actions(server: LymaServer, call: Call) -> Json | Coroutine[Any, Any, Json]:
    """What Lyma offers at a place of an open document; in an agent.toml also what its code lenses do, for editors that have
    none.
    """
    params: types.CodeActionParams = call.params
    document = server.documents.find(params.text_document.uri)
    if document is None:
        return []
    only = params.context.only
    offered = list(_offers(document, params))
    listed = [_as_action(server, *offer) for offer in offered if only is None or _wanted(offer[0], only)]
    if document.uri.endswith("/agent.toml") and (only is None or _wanted(AGENT, only)):
        return _with_agents(server, document.uri, listed)
    return listed


async def _with_agents(server: LymaServer, uri: str, listed: list[Json]) -> Json:
    from lyma_server.editor.features.agent_file import agent_at, agent_commands

    document = agent_at(server, uri)
    commands = [] if document is None else await agent_commands(server, document)
    if not server.client.has("textDocument.codeAction.codeActionLiteralSupport"):
        return [*listed, *commands]
    return [*listed, *({"title": each["title"], "kind": AGENT, "command": each} for each in commands)]


def resolve(server: LymaServer, call: Call) -> Coroutine[Any, Any, Json]:
    """Ask the model and give the action with its edit."""
    action: Json = call.params
    wish = _wish(action.get("data") if isinstance(action, dict) else None)
    document = _current(server, wish)
    params = AskParams(
        prompt=(TextBlock(text=_request(wish)), _surroundings(document, wish)), context=_context(wish), tools=False
    )
    starting = start_when_ready(server, call, params, events=False, create_progress=True)
    return _resolve(server, action, wish, starting)


async def _resolve(server: LymaServer, action: Json, wish: Wish, starting: Coroutine[Any, Any, Conversation]) -> Json:
    try:
        result = await (await starting).result()
    except asyncio.CancelledError:
        raise JsonRpcException("The request was cancelled.", REQUEST_CANCELLED) from None
    if result.stop_reason == "cancelled":
        raise JsonRpcException("The request was cancelled.", REQUEST_CANCELLED)
    document = _current(server, wish)
    text = replaced(document.text, wish.first, wish.last, result.text)
    return {**action, "edit": workspace_edit(server.client, document, text)}


def replaced(text: str, first: int, last: int, answer: str) -> str:
    """`text` with the lines from `first` to `last` replaced by the fenced block of an answer. Raises LymaError."""
    found = _FENCED.search(answer)
    if found is None:
        raise LymaError("The model answered without a text to put there; try again, or ask in words.")
    lines = split_lines(text)
    old = "".join(lines[first : last + 1])
    new = with_line_end(found[2], line_end(text))
    if not old.endswith(("\n", "\r")):
        new = new.removesuffix(line_end(text))
    return "".join([*lines[:first], new, *lines[last + 1 :]])


def _offers(document: Document, params: types.CodeActionParams) -> Iterator[tuple[str, str, Wish, Json]]:
    """Kind, title, wish and diagnostic of each action."""
    end = max(0, len(split_lines(document.text)) - 1)
    for each in params.context.diagnostics[:MOST_FIXES]:
        first, last = each.range.start.line, max(each.range.start.line, each.range.end.line)
        wish = Wish(
            uri=document.uri,
            version=document.version,
            first=max(0, first - NEARBY),
            last=min(end, last + NEARBY),
            message=each.message,
            line=first,
        )
        title = each.message.strip().split("\n")[0]
        yield QUICK_FIX, f"Fix with Lyma: {title[:_TITLE]}", wish, each
    start, stop = params.range.start, params.range.end
    if (start.line, start.character) != (stop.line, stop.character):
        last = stop.line - (stop.character == 0 and stop.line > start.line)
        wish = Wish(uri=document.uri, version=document.version, first=min(start.line, end), last=min(last, end))
        yield REWRITE, "Rewrite the selection with Lyma", wish, None


def _wanted(kind: str, only: Any) -> bool:
    """A kind is wanted by its own name or by a beginning of it: `refactor` wants `refactor.rewrite.lyma`."""
    return any(kind == each or kind.startswith(f"{each}.") or not each for each in map(_plain_kind, only))


def _plain_kind(kind: Any) -> str:
    return str(getattr(kind, "value", kind))


def _as_action(server: LymaServer, kind: str, title: str, wish: Wish, diagnostic: Any) -> Json:
    client, action = server.client, "textDocument.codeAction"
    command = {"title": title, "command": "lyma.ask", "arguments": [_ask_params(wish)]}
    if not client.has(f"{action}.codeActionLiteralSupport"):
        return command
    offered: dict[str, Json] = {"title": title, "kind": kind}
    if diagnostic is not None:
        offered["diagnostics"] = [server.protocol.plain(diagnostic)]
    properties = client.get(f"{action}.resolveSupport.properties")
    if isinstance(properties, list) and "edit" in properties and client.has(f"{action}.dataSupport"):
        return {**offered, "data": {"lyma": _data(wish)}}
    return {**offered, "command": command}


def _data(wish: Wish) -> Json:
    """Without nulls: some editors lose them on the way back."""
    return {name: value for name, value in asdict(wish).items() if value is not None}


def _wish(data: Json) -> Wish:
    """Raises InvalidParams where an action is not one of ours."""
    found = data.get("lyma") if isinstance(data, dict) else None
    wish = None
    with suppress(TypeError):
        wish = Wish(**(found if isinstance(found, dict) else {}))
    if wish is None or not _holds(wish):
        raise InvalidParams("params.data: that of an action of Lyma is expected")
    return wish


def _holds(wish: Wish) -> bool:
    numbers = (wish.version, wish.first, wish.last, wish.line)
    texts = isinstance(wish.uri, str) and isinstance(wish.message, str | None)
    return texts and all(type(number) is int for number in numbers) and min(numbers[1:]) >= 0


def _current(server: LymaServer, wish: Wish) -> Document:
    """The document as it was when the action was offered; another version has other lines."""
    document = server.documents.find(wish.uri)
    if document is None or document.version != wish.version:
        raise JsonRpcException("The document has changed; ask for its actions again.", CONTENT_MODIFIED)
    return document


def _request(wish: Wish) -> str:
    first, last = wish.first + 1, wish.last + 1
    what = IMPROVE if wish.message is None else FIX
    request = what.format(first=first, last=last, line=wish.line + 1, uri=wish.uri, message=wish.message)
    return request + FORM.format(first=first, last=last)


def _surroundings(document: Document, wish: Wish) -> FileBlock:
    end = len(split_lines(document.text))
    return FileBlock(uri=wish.uri, first_line=max(1, wish.first + 1 - SEEN), last_line=min(end, wish.last + 1 + SEEN))


def _context(wish: Wish) -> AskContext:
    selection = Range(start=Position(line=wish.first, character=0), end=Position(line=wish.last + 1, character=0))
    return AskContext(active=ActiveDocument(uri=wish.uri, version=wish.version, selections=(selection,)))


def _ask_params(wish: Wish) -> Json:
    """The same for a turn that edits with its tools."""
    first, last = wish.first + 1, wish.last + 1
    what = IMPROVE if wish.message is None else FIX
    text = what.format(first=first, last=last, line=wish.line + 1, uri=wish.uri, message=wish.message)
    context = _context(wish)
    if wish.message is not None:
        place = Position(line=wish.line, character=0)
        problem = Diagnostic(uri=wish.uri, range=Range(start=place, end=place), message=wish.message)
        context = AskContext(active=context.active, diagnostics=(problem,))
    return unstructure(AskParams(prompt=f"{text}Change the file itself.", context=context))
