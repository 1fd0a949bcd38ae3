"""`lyma/subagent`: agents drafted, compiled, run, stopped, listed and shown."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final

from lyma_server.agent.aside import Aside, ask_once
from lyma_server.agent.subagents import spec_path
from lyma_server.editor.features.approvals import view
from lyma_server.editor.features.grounds import workspace_for
from lyma_server.editor.features.progress import Progress
from lyma_server.editor.features.uris import to_path, to_uri
from lyma_server.errors import UsageError
from lyma_server.protocol.agents import AgentDiagnostic, AgentInfo, RunInfo, SubagentResult
from lyma_server.protocol.convert import unstructure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from lyma_server.compose import Core
    from lyma_server.editor.rpc.calls import Call
    from lyma_server.editor.server import LymaServer
    from lyma_server.factory.diagnostic import Diagnostic
    from lyma_server.factory.draft import Draft
    from lyma_server.protocol.agents import SubagentParams
    from lyma_server.protocol.base import Json


async def subagent(server: LymaServer, call: Call) -> Json:
    """Do what is asked. Raises UsageError, the errors of agents and of approvals."""
    params = call.params
    if params.action == "run":
        from lyma_server.editor.features.agent_run import run

        return unstructure(SubagentResult(result=await run(server, call, params, events=server.client.takes_events)))
    return unstructure(await act(server, params))


async def act(server: LymaServer, params: SubagentParams) -> SubagentResult:
    """All but `run`, before it is JSON."""
    core = await server.engine.open()
    return await _ACTIONS[params.action](server, core, params)


async def _draft(server: LymaServer, core: Core, params: SubagentParams) -> SubagentResult:
    if (params.task is None) == (params.template is None):
        raise UsageError("Give a `task` for a model, or the name of a new agent as `template`.", field="task")
    _, root = workspace_for(server, core, params.root)
    progress = Progress(server, params.work_done_token)
    progress.begin()
    ending = "failed"
    try:
        draft = await _drafted(core, params, root)
        ending = "drafted"
    finally:
        progress.end(ending)
    return SubagentResult(uri=to_uri(draft.path), notes=draft.notes)


async def _drafted(core: Core, params: SubagentParams, root: Path) -> Draft:
    from lyma_server.factory.draft import draft_agent, draft_from_template

    ceiling = core.factory.ceiling
    if params.template is not None:
        return await asyncio.to_thread(draft_from_template, params.template, ceiling, root)

    async def ask_model(instructions: str, prompt: str) -> str:
        aside = Aside(instructions, core.redactor.redact(prompt), folder=str(root))
        return (await ask_once(core.router, aside, lambda _attempt: None))[0]

    return await draft_agent(params.task or "", ask_model, ceiling, root, params.agent)


async def _compile(server: LymaServer, core: Core, params: SubagentParams) -> SubagentResult:
    workspace, root = workspace_for(server, core, params.root, params.uri)
    path = _spec(params, root)
    document = server.documents.at(path)
    text = None if document is None else document.text.encode("utf-8", "replace")
    examined = await asyncio.to_thread(partial(core.factory.compile, path.parent, text=text))
    uri, found = workspace.uri(path), tuple(map(as_message, examined.diagnostics))
    if examined.bundle is None:
        return SubagentResult(uri=uri, diagnostics=found)
    hash_ = examined.bundle.hash
    standing = await asyncio.to_thread(core.factory.standing, hash_, root)
    return SubagentResult(uri=uri, hash=hash_, approval=standing, diagnostics=found)


def _spec(params: SubagentParams, root: Path) -> Path:
    if params.uri is not None:
        path = to_path(params.uri)
        return path if path.name == "agent.toml" else path / "agent.toml"
    if params.agent is None:
        raise UsageError("Name the agent to compile: the `uri` of its agent.toml, or its name as `agent`.", field="uri")
    return spec_path(params.agent, root)


async def _stop(_server: LymaServer, core: Core, params: SubagentParams) -> SubagentResult:
    if params.run is None:
        raise UsageError("`run` is missing.", field="run")
    await core.runs.stop(params.run)
    return SubagentResult()


async def _list(server: LymaServer, core: Core, params: SubagentParams) -> SubagentResult:
    _, root = workspace_for(server, core, params.root)
    rows = await asyncio.to_thread(core.factory.rows, root)
    agents = (AgentInfo(hash=row.hash, name=row.name, purpose=row.purpose, approval=row.standing) for row in rows)
    runs = (
        RunInfo(run=each.run_id, hash=each.hash, name=each.path[-1], path=each.path[:-1])
        for each in core.runs.under_way()
    )
    return SubagentResult(agents=tuple(agents), runs=tuple(runs))


async def _show(_server: LymaServer, core: Core, params: SubagentParams) -> SubagentResult:
    if not params.hash:
        raise UsageError("`hash` is missing.", field="hash")
    return SubagentResult(agent=await view(core.factory, params.hash))


def as_message(found: Diagnostic) -> AgentDiagnostic:
    """A diagnostic for the wire."""
    return AgentDiagnostic(
        code=found.code, path=found.path, message=found.message, hint=found.hint, file=found.file, line=found.line
    )


_ACTIONS: Final[Mapping[str, Callable[[LymaServer, Core, SubagentParams], Awaitable[SubagentResult]]]] = {
    "draft": _draft,
    "compile": _compile,
    "stop": _stop,
    "list": _list,
    "show": _show,
}
