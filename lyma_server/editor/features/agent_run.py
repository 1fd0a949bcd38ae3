"""A run that the person at the editor starts: a turn like an ask, whose work is that run."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from lyma_server.agent.runs import Wanted
from lyma_server.agent.texts import map_texts
from lyma_server.editor.features.ask import converse
from lyma_server.editor.features.grounds import workspace_for
from lyma_server.editor.features.person import EditorPerson
from lyma_server.editor.features.progress import Progress
from lyma_server.errors import UsageError
from lyma_server.protocol.agents import AgentRun, RunUsage

if TYPE_CHECKING:
    from lyma_server.agent.direct import RunTurn
    from lyma_server.agent.ports import Listener
    from lyma_server.agent.runs import Report
    from lyma_server.agent.turn import Turn
    from lyma_server.editor.rpc.calls import Call
    from lyma_server.editor.server import LymaServer
    from lyma_server.protocol.agents import SubagentParams
    from lyma_server.protocol.messages import AskResult


async def run(server: LymaServer, call: Call, params: SubagentParams, *, events: bool) -> AgentRun:
    """Run it to its end. Raises UsageError and the errors of approvals before it has begun, nothing for how it ended."""
    if not params.hash:
        raise UsageError("`hash` is missing.", field="hash")
    core = await server.engine.open()
    workspace, _ = workspace_for(server, core, params.root)
    hash_ = await asyncio.to_thread(core.factory.store.find, params.hash)
    wanted = Wanted(hash_, params.input, "as_set" if params.apply else "no")
    started: list[RunTurn] = []

    def start(hear: Listener) -> Turn:
        started.append(core.start_run(wanted, workspace, EditorPerson(server), hear))
        return started[0].turn

    conversation = converse(server, Progress(server, params.work_done_token, create=not events), start, events=events)
    call.on_cancel(conversation.turn.cancel)
    result = await conversation.result()
    _, report = await started[0].report()
    return map_texts(as_message(hash_, result, report), core.redactor.redact)


def as_message(hash_: str, result: AskResult, report: Report | None) -> AgentRun:
    """How a run ended; null: it was stopped before it could say so."""
    if report is None:
        return AgentRun(run="", hash=hash_, status="cancelled", edits=result.edits)
    found = report.result.to_json()
    used = report.result.usage
    return AgentRun(
        run=report.result.run_id,
        hash=hash_,
        status=report.result.status,
        output=report.result.output,
        error=report.result.error.message if report.result.error else None,
        usage=RunUsage(
            turns=used.turns,
            tokens_in=used.tokens_in,
            tokens_out=used.tokens_out,
            cost_micros=used.cost_micros,
            wall_ms=used.wall_ms,
        ),
        patch=found["patch"],
        transcript=found["transcript"],
        edits=result.edits,
        left=tuple(f"{each.path}: {each.reason}" for each in report.left),
    )
