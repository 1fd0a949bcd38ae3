"""Agents by `workspace/executeCommand`, for an editor that has no plugin for Lyma: as the methods, and shown to the person."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any, TypeVar

from lsprotocol.types import MessageType

from lyma_server.editor.features import agents, approvals
from lyma_server.editor.features.agent_run import run
from lyma_server.editor.features.transcript import append, show_file, show_message
from lyma_server.editor.features.uris import to_path
from lyma_server.errors import LymaError, UsageError
from lyma_server.protocol.agents import AgentRun, ApproveParams, SubagentParams, SubagentResult
from lyma_server.protocol.convert import structure, unstructure

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from lyma_server.editor.rpc.calls import Call
    from lyma_server.editor.server import LymaServer
    from lyma_server.protocol.base import Json

Params = TypeVar("Params")


async def approve(server: LymaServer, call: Call) -> Json:
    """Ask the person about the agent with a hash; nothing is approved without their answer."""
    params = given(ApproveParams, call.params.arguments, "hash", action="approve")
    await _told(server, approvals.act(server, params))
    show_message(server, f"{params.hash} is approved for this folder.")
    _refresh_lenses(server)
    return {"state": "approved"}


async def reject(server: LymaServer, call: Call) -> Json:
    """Say no to the questions about an agent that wait."""
    params = given(ApproveParams, call.params.arguments, "hash", action="reject")
    return unstructure(await _told(server, approvals.act(server, params)))


async def draft_agent(server: LymaServer, call: Call) -> Json:
    """Draft an agent for a task and open it."""
    token = {} if call.params.work_done_token is None else {"workDoneToken": call.params.work_done_token}
    params = given(SubagentParams, call.params.arguments, "task", action="draft", **token)
    drafted = await _told(server, agents.act(server, params))
    path = to_path(drafted.uri or "")
    if not await show_file(server, path):
        show_message(server, f"The draft is {path}.")
    for note in drafted.notes:
        show_message(server, note)
    return unstructure(drafted)


async def compile_agent(server: LymaServer, call: Call) -> Json:
    """Compile the agent with a URI or a name."""
    named = call.params.arguments or [None]
    field = "uri" if str(named[0]).startswith("file:") else "agent"
    params = given(SubagentParams, call.params.arguments, field, action="compile")
    compiled = await _told(server, agents.act(server, params))
    show_message(server, describe(compiled), MessageType.Error if compiled.hash is None else MessageType.Info)
    _refresh_lenses(server)
    return unstructure(compiled)


async def run_compiled_agent(server: LymaServer, call: Call) -> Json:
    """Run the agent with a hash, with an input if there is a second argument, and show what it gives."""
    token = {} if call.params.work_done_token is None else {"workDoneToken": call.params.work_done_token}
    params = given(SubagentParams, call.params.arguments, "hash", "input", action="run", **token)
    ended = await _told(server, run(server, call, params, events=server.client.asked_for_events))
    await _show_run(server, ended)
    return unstructure(SubagentResult(result=ended))


def given(cls: type[Params], arguments: Any, *names: str, **fixed: Json) -> Params:
    """The params that arguments stand for: an object like them, or the values of `names` in order. Raises UsageError."""
    listed = list(arguments or [])
    if len(listed) == 1 and isinstance(listed[0], dict):
        wanted = listed[0]
    elif len(listed) <= len(names):
        wanted = dict(zip(names, listed, strict=False))
    else:
        raise UsageError(f"At most {len(names)} arguments are expected: {', '.join(names)}; or one object.")
    return structure(cls, {**wanted, **fixed}, closed=True)


Told = TypeVar("Told")


async def _told(server: LymaServer, work: Coroutine[Any, Any, Told]) -> Told:
    """Do it; what stands against it is shown and raised."""
    try:
        return await work
    except LymaError as problem:
        show_message(server, server.redact(problem.message), MessageType.Error)
        raise


def describe(compiled: SubagentResult) -> str:
    """What came of compiling, in a line or a few."""
    if compiled.hash is None:
        wrong = [f"{each.file}, line {each.line or 1}: {each.message}" for each in compiled.diagnostics[:3]]
        return "\n".join(["The agent does not compile.", *wrong])
    standing = "approved" if compiled.approval == "approved" else f"not approved ({compiled.approval})"
    return f"Compiled: {compiled.hash}, {standing} in this folder."


async def _show_run(server: LymaServer, ended: AgentRun) -> None:
    """In a document where the editor can open one, else in a message."""
    text = _output_of(ended)
    folder = (await server.engine.open()).home.root / "transcripts"
    quoted = "\n".join(f"    {line}" for line in text.splitlines())
    with contextlib.suppress(OSError):
        path = append(folder, f"run-{ended.run or 'cancelled'}", f"# Run of {ended.hash}: {ended.status}\n\n{quoted}\n")
        if await show_file(server, path):
            return
    show_message(server, f"{ended.status}: {text}"[:1000])


def _output_of(ended: AgentRun) -> str:
    if ended.status != "ok":
        return ended.error or "It has no result."
    output = ended.output
    if isinstance(output, dict) and list(output) == ["text"] and isinstance(output["text"], str):
        return output["text"]
    return json.dumps(output, ensure_ascii=False, indent=2)


def _refresh_lenses(server: LymaServer) -> None:
    if server.client.has("workspace.codeLens.refreshSupport"):
        server.protocol.send_request("workspace/codeLens/refresh", None)
