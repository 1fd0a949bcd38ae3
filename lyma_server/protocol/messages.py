"""Params and results of Lyma's own methods: the source of truth for protocol.md and for both clients' types."""

from __future__ import annotations

from typing import Literal, TypeAlias

from lyma_server.protocol.base import Json, message
from lyma_server.protocol.events import Attempt, EditSummary, StopReason, Usage


@message
class Position:
    """As in LSP: zero-based line and character in the negotiated encoding."""

    line: int
    character: int


@message
class Range:
    """As in LSP: the end is exclusive."""

    start: Position
    end: Position


@message
class TextBlock:
    """Text that a person wrote."""

    type: Literal["text"] = "text"
    text: str


@message
class FileBlock:
    """A file to send along, whole or by lines (from 1, both inclusive)."""

    type: Literal["file"] = "file"
    uri: str
    first_line: int | None = None
    last_line: int | None = None


Block: TypeAlias = TextBlock | FileBlock


@message
class ActiveDocument:
    """The document that has the cursor, and what is selected in it (an empty range is the cursor)."""

    uri: str
    version: int | None = None
    selections: tuple[Range, ...] = ()


@message
class DocumentVersion:
    """An open document worth knowing of."""

    uri: str
    version: int | None = None


@message
class Diagnostic:
    """What another server says of a document, passed on by the client."""

    uri: str
    range: Range
    message: str
    severity: int | None = None
    source: str | None = None


@message
class AskContext:
    """What the editor shows. `root` is a URI; where it is absent, it is the workspace folder that owns the active document."""

    active: ActiveDocument | None = None
    documents: tuple[DocumentVersion, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    root: str | None = None


@message
class AskBudget:
    """Limits of one ask; money in integer USD micros, time in milliseconds."""

    max_steps: int | None = None
    max_tokens: int | None = None
    max_cost_micros: int | None = None
    timeout_ms: int | None = None


@message
class AskParams:
    """A prompt and all that goes with it. In a `prompt` that is a string, `@path` and `@path:3-9` name files to send along;
    in blocks nothing is interpreted. `session` continues a conversation. `provider` pins: nothing is sent elsewhere;
    `prefer` is only tried first. `tools` false answers without any.
    """

    prompt: str | tuple[Block, ...]
    session: str | None = None
    context: AskContext | None = None
    provider: str | None = None
    prefer: str | None = None
    model: str | None = None
    tools: bool = True
    budget: AskBudget | None = None
    work_done_token: str | int | None = None


@message
class AskResult:
    """How a turn ended. `text` is the whole answer, `route` every attempt of every model call."""

    session: str
    turn: str
    stop_reason: StopReason
    text: str
    edits: tuple[EditSummary, ...] = ()
    usage: Usage = Usage()
    route: tuple[Attempt, ...] = ()


@message
class StatusParams:
    """Nothing to say."""


@message
class KeyStatus:
    """A key, masked. `state` is ready, cooling, disabled or missing; `until` is RFC 3339."""

    key: str
    state: Literal["ready", "cooling", "disabled", "missing"]
    account: str | None = None
    until: str | None = None
    reason: str | None = None


@message
class ProviderStatus:
    """A provider. `tokens_today` and `cost_micros_today` count since local midnight; null cost: a price is unknown."""

    name: str
    api: str
    model: str
    breaker: Literal["closed", "open", "half_open"] = "closed"
    base_url: str | None = None
    keys: tuple[KeyStatus, ...] = ()
    tokens_today: int = 0
    cost_micros_today: int | None = 0


@message
class StatusResult:
    """`roots` are the workspace folders, `home` is Lyma's own folder, `sandbox` what bounds compiled agents."""

    version: str
    protocol: int
    home: str
    providers: tuple[ProviderStatus, ...] = ()
    roots: tuple[str, ...] = ()
    sandbox: str = "none"


@message
class ModelsParams:
    """One provider, or all of them."""

    provider: str | None = None


@message
class ModelInfo:
    """A model. Prices are USD micros a million tokens; absent where unknown."""

    provider: str
    id: str
    context_tokens: int | None = None
    input_micros: int | None = None
    output_micros: int | None = None


@message
class ModelsFailure:
    """A provider that could not be asked, in one sentence."""

    provider: str
    message: str


@message
class ModelsResult:
    """What could be listed, and who could not be asked."""

    models: tuple[ModelInfo, ...] = ()
    failures: tuple[ModelsFailure, ...] = ()


@message
class SessionsParams:
    """`load` sends the session's events again, with `replay` true, before it answers; all but `list` name a session.

    `undo` puts back the files that a turn changed and `diff` shows them; without `turn` it is the last one that changed any
    and was not undone. Where a file was changed since, nothing is put back, unless `partial` is true.
    """

    action: Literal["list", "load", "fork", "delete", "undo", "diff"]
    session: str | None = None
    turn: str | None = None
    partial: bool = False


@message
class SessionInfo:
    """A session; times are RFC 3339 in UTC."""

    session: str
    title: str
    root: str | None
    created: str
    updated: str
    turns: int


@message
class UndoneFile:
    """What became of a file that a turn had changed: `removed`, for the turn had made it; `unchanged`, for it was as
    before; `kept` as it is, for the `reason`.
    """

    uri: str
    outcome: Literal["restored", "removed", "unchanged", "kept"]
    reason: str | None = None


@message
class SessionsResult:
    """`list`: all sessions, the latest first; otherwise the one in question, none after `delete`. `turn` is the one that
    was undone or is shown, `files` what became of its files, `diff` what it had changed, as a unified diff.
    """

    sessions: tuple[SessionInfo, ...] = ()
    turn: str | None = None
    files: tuple[UndoneFile, ...] = ()
    diff: str | None = None


@message
class LymaCapabilities:
    """`capabilities.experimental.lyma` of either side; an omitted marker means unsupported."""

    protocol_version: int
    events: dict[str, Json] | None = None
    approvals: dict[str, Json] | None = None
    diagnostics: dict[str, Json] | None = None
