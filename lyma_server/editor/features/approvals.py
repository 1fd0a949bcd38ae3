"""`lyma/approve`: what is approved, what waits, and a person's answer. A request by itself approves nothing: it asks the person
through the editor, or it brings the answer to a question whose nonce this client was given.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from lyma_server.agent import approvals
from lyma_server.agent.session import rfc3339
from lyma_server.editor.features.grounds import workspace_for
from lyma_server.editor.features.person import EditorPerson
from lyma_server.errors import UsageError
from lyma_server.factory.canonical import HASH
from lyma_server.protocol.agents import AgentView, ApprovalInfo, ApproveResult, PendingApproval
from lyma_server.protocol.convert import unstructure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from lyma_server.compose import Core
    from lyma_server.editor.rpc.calls import Call
    from lyma_server.editor.server import LymaServer
    from lyma_server.factory.factory import Factory
    from lyma_server.protocol.agents import ApproveParams
    from lyma_server.protocol.base import Json


async def approve(server: LymaServer, call: Call) -> Json:
    """Do what is asked. Raises UsageError, and the errors of approvals."""
    return unstructure(await act(server, call.params))


async def act(server: LymaServer, params: ApproveParams) -> ApproveResult:
    """The same before it is JSON."""
    core = await server.engine.open()
    return await _ACTIONS[params.action](server, core, params)


async def _list(server: LymaServer, core: Core, _params: ApproveParams) -> ApproveResult:
    records = core.factory.gate.records
    found, revoked = await asyncio.to_thread(lambda: (records.all(), records.revoked()))
    infos = (
        ApprovalInfo(
            hash=record.hash,
            name=record.name,
            workspace=record.workspace,
            channel=record.channel,
            approved=rfc3339(record.approved_at),
            expires=rfc3339(record.expires_at),
        )
        for record in found
    )
    pending = (PendingApproval(hash=each.hash, title=each.title, path=each.path) for each in server.questions.listed())
    return ApproveResult(approvals=tuple(infos), revoked=revoked, pending=tuple(pending))


async def _show(_server: LymaServer, core: Core, params: ApproveParams) -> ApproveResult:
    return ApproveResult(agent=await view(core.factory, _named(params)))


async def _approve(server: LymaServer, core: Core, params: ApproveParams) -> ApproveResult:
    if params.nonce is not None:
        server.questions.answer(_named(params), params.nonce, approved=True)
        return ApproveResult(state="approved")
    _, root = workspace_for(server, core, params.root)
    hash_ = await asyncio.to_thread(core.factory.store.find, _named(params))
    if await asyncio.to_thread(core.factory.standing, hash_, root) != "approved":
        desk = approvals.Desk(core.factory, root, EditorPerson(server), lambda _body: None)
        await approvals.ask(desk, hash_)
    return ApproveResult(state="approved")


async def _reject(server: LymaServer, core: Core, params: ApproveParams) -> ApproveResult:
    """To say no takes no nonce: it grants nothing."""
    if params.nonce is not None:
        server.questions.answer(_named(params), params.nonce, approved=False)
        return ApproveResult(state="rejected")
    hash_ = await asyncio.to_thread(core.factory.store.find, _named(params))
    if not server.questions.reject(hash_):
        raise UsageError(f"No question about {hash_} waits for an answer.", field="hash")
    return ApproveResult(state="rejected")


async def _revoke(_server: LymaServer, core: Core, params: ApproveParams) -> ApproveResult:
    named = _named(params)
    hash_ = named if HASH.fullmatch(named) else await asyncio.to_thread(core.factory.store.find, named)
    await asyncio.to_thread(core.factory.gate.revoke, hash_)
    return ApproveResult(state="revoked")


async def view(factory: Factory, named: str) -> AgentView:
    """What a person is shown of an agent. Raises UsageError, HashMismatch."""
    hash_ = await asyncio.to_thread(factory.store.find, named)
    bundle, presentation = await asyncio.to_thread(factory.view, hash_)
    return AgentView(
        hash=hash_,
        title=presentation.title,
        summary=presentation.summary,
        text=presentation.text,
        manifest=dict(bundle.facts),
    )


def _named(params: ApproveParams) -> str:
    if not params.hash:
        raise UsageError("`hash` is missing.", field="hash")
    return params.hash


_ACTIONS: Final[Mapping[str, Callable[[LymaServer, Core, ApproveParams], Awaitable[ApproveResult]]]] = {
    "list": _list,
    "show": _show,
    "approve": _approve,
    "reject": _reject,
    "revoke": _revoke,
}
