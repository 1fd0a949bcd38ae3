"""Params and results about agents: drafting, compiling, approving and running them."""

from __future__ import annotations

from typing import Literal, TypeAlias

from lyma_server.protocol.base import Json, message
from lyma_server.protocol.events import EditSummary

Standing: TypeAlias = Literal["approved", "waiting", "expired", "revoked", "untrusted", "damaged"]
RunStatus: TypeAlias = Literal["ok", "schema_mismatch", "budget_exceeded", "timeout", "cancelled", "crashed", "refused"]


@message
class RequestApprovalParams:
    """A person must decide about a compiled agent. Show all of `text` (`uri` is a read-only file that holds it), then
    `title` as the question. `nonce` is for the answer and for nothing else; keep it out of logs. `path` names the runs
    above it.
    """

    hash: str
    nonce: str
    title: str
    summary: str
    text: str
    manifest: dict[str, Json]
    path: tuple[str, ...] = ()
    uri: str | None = None


@message
class RequestApprovalResult:
    """The person's answer, with the hash and the nonce of the question. Where nobody answered, answer null."""

    hash: str
    nonce: str
    approved: bool


@message
class ApproveParams:
    """`approve` without a `nonce` asks the person through the editor and waits; `approve` and `reject` with the nonce of
    a question that this client was given answer it. All but `list` name a hash. `root` is the URI of the workspace
    folder; absent: the first.
    """

    action: Literal["list", "show", "approve", "reject", "revoke"]
    hash: str | None = None
    nonce: str | None = None
    root: str | None = None


@message
class ApprovalInfo:
    """An approval. `workspace` is a path; times are RFC 3339 in UTC."""

    hash: str
    name: str
    workspace: str
    channel: str
    approved: str
    expires: str


@message
class PendingApproval:
    """A question that waits for a person; `path` names the runs above it."""

    hash: str
    title: str
    path: tuple[str, ...] = ()


@message
class AgentView:
    """What a person is shown of an agent before approving it; `text` is everything."""

    hash: str
    title: str
    summary: str
    text: str
    manifest: dict[str, Json]


@message
class ApproveResult:
    """`list`: what is approved, revoked and asked; `show`: the agent; else the new state."""

    approvals: tuple[ApprovalInfo, ...] = ()
    revoked: tuple[str, ...] = ()
    pending: tuple[PendingApproval, ...] = ()
    agent: AgentView | None = None
    state: Literal["approved", "rejected", "revoked"] | None = None


@message
class SubagentParams:
    """What to do with agents. `draft` takes a `task` for a model or the name of a new agent as `template`; `compile` takes
    the `uri` of an agent.toml or the `agent`'s name; `run` takes a `hash` in full and an `input`, and `stop` a `run`;
    `show` takes a hash. `apply` false leaves a run's changes in its patch. `root` as in `lyma/approve`.
    """

    action: Literal["draft", "compile", "run", "stop", "list", "show"]
    task: str | None = None
    template: str | None = None
    agent: str | None = None
    uri: str | None = None
    hash: str | None = None
    input: Json = None
    run: str | None = None
    apply: bool = True
    root: str | None = None
    work_done_token: str | int | None = None


@message
class AgentDiagnostic:
    """What is wrong with an agent. `file` is relative to the agent's folder, `path` names the setting, `line` is from 1."""

    code: str
    path: str
    message: str
    hint: str
    file: str
    line: int | None = None


@message
class AgentInfo:
    """A compiled agent; `approval` is how it stands in the workspace."""

    hash: str
    name: str
    purpose: str
    approval: Standing


@message
class RunInfo:
    """A run under way; `path` names the runs above it."""

    run: str
    hash: str
    name: str
    path: tuple[str, ...] = ()


@message
class RunUsage:
    """What a run used, with all that it ran; money in integer USD micros."""

    turns: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_micros: int = 0
    wall_ms: int = 0


@message
class AgentRun:
    """How a run ended. `output` is data from a model that nobody vouches for. `patch` and `transcript` are relative to
    Lyma's home; `edits` were made in the workspace, `left` are files whose change was not.
    """

    run: str
    hash: str
    status: RunStatus
    output: Json = None
    error: str | None = None
    usage: RunUsage = RunUsage()
    patch: str | None = None
    transcript: str | None = None
    edits: tuple[EditSummary, ...] = ()
    left: tuple[str, ...] = ()


@message
class SubagentResult:
    """`draft`: `uri`, `notes`; `compile`: `hash` and `approval`, or `diagnostics`; `run`: `result`; `list`: `agents`, `runs`;
    `show`: `agent`.
    """

    uri: str | None = None
    notes: tuple[str, ...] = ()
    hash: str | None = None
    approval: Standing | None = None
    diagnostics: tuple[AgentDiagnostic, ...] = ()
    result: AgentRun | None = None
    agents: tuple[AgentInfo, ...] = ()
    runs: tuple[RunInfo, ...] = ()
    agent: AgentView | None = None
