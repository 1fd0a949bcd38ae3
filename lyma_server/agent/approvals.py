"""Asks a person about a compiled agent, and waits. Whoever needs an approval comes through here; nothing grants one but the
person's answer, which the factory's gate takes.

A question ends with the first of: an answer, an approval of the same hash that the person gave elsewhere (in a terminal),
ten minutes, or the end of whoever asked. Its nonce goes to the person's face and nowhere else.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from attrs import frozen

from lyma_server.agent.ports import ApprovalRequest
from lyma_server.errors import (
    ApprovalDenied,
    ApprovalExpired,
    ApprovalRequired,
    ApprovalUnavailable,
    LymaError,
)
from lyma_server.factory.approval import QUESTION_S
from lyma_server.factory.characters import visible
from lyma_server.protocol.events import ApprovalRequested, ApprovalResolved

if TYPE_CHECKING:
    from pathlib import Path

    from lyma_server.agent.ports import ApprovalReply, Emit, Person
    from lyma_server.factory.approval import Record
    from lyma_server.factory.bundle import Bundle
    from lyma_server.factory.factory import Factory, Questioned

GLANCE_S: Final = 0.5
"""How often to look whether the person has approved it elsewhere."""

Outcome: TypeAlias = Literal["approved", "rejected", "expired", "withdrawn"]


@frozen
class Desk:
    """Where questions are asked: whom, about which workspace, and who is told of it. `patience_s` is for an answer."""

    factory: Factory
    workspace: Path
    person: Person
    emit: Emit
    patience_s: float = QUESTION_S


async def admit(desk: Desk, hash_: str) -> Bundle:
    """The agent with this full hash, once it and every agent that it may run are approved.

    Raises UsageError where there is none, HashMismatch, ApprovalDenied, ApprovalExpired, ApprovalUnavailable.
    """
    bundle = await asyncio.to_thread(desk.factory.store.load, hash_)
    await _admit_one(desk, hash_, ())
    for delegate in bundle.delegates:
        await _admit_one(desk, delegate, (bundle.name,))
    return bundle


async def ask(desk: Desk, hash_: str, path: tuple[str, ...] = ()) -> None:
    """Ask the person about one agent, whatever was approved before; `path` names the agents above it. Raises as `admit`."""
    questioned = await asyncio.to_thread(desk.factory.question, hash_, desk.workspace, desk.person.channel)
    desk.emit(ApprovalRequested(hash=hash_, title=questioned.presentation.title, path=path))
    outcome: Outcome = "withdrawn"
    try:
        await _settle(desk, questioned, path)
        outcome = "approved"
    except ApprovalExpired:
        outcome = "expired"
        raise
    except ApprovalDenied:
        outcome = "rejected"
        raise
    finally:
        desk.factory.gate.withdraw(questioned.asked)
        desk.emit(ApprovalResolved(hash=hash_, state=outcome))


async def _admit_one(desk: Desk, hash_: str, path: tuple[str, ...]) -> None:
    try:
        await asyncio.to_thread(desk.factory.gate.check, hash_, desk.workspace)
    except (ApprovalRequired, ApprovalExpired) as lack:
        try:
            await ask(desk, hash_, path)
        except ApprovalUnavailable:
            raise unavailable(hash_, path, expired=isinstance(lack, ApprovalExpired)) from None


async def _settle(desk: Desk, questioned: Questioned, path: tuple[str, ...]) -> None:
    """Wait for the first end of a question. Raises unless it was approved."""
    hash_ = questioned.asked.subject.hash
    answering = asyncio.ensure_future(desk.person.approve(request_of(questioned, path)))
    elsewhere = asyncio.ensure_future(_approved_elsewhere(desk, hash_))
    try:
        await asyncio.wait({answering, elsewhere}, timeout=desk.patience_s, return_when=asyncio.FIRST_COMPLETED)
        if answering.done():
            await _take(desk, questioned, answering.result())
        elif elsewhere.done():
            elsewhere.result()
        else:
            raise ApprovalExpired(f"{hash_} is not approved: nobody answered in time; ask again.", hash=hash_)
    finally:
        for waiting in (answering, elsewhere):
            waiting.cancel()
        await asyncio.gather(answering, elsewhere, return_exceptions=True)


async def _take(desk: Desk, questioned: Questioned, reply: ApprovalReply | None) -> None:
    if reply is None:
        raise unavailable(questioned.asked.subject.hash)
    await asyncio.to_thread(desk.factory.answer, questioned, reply.hash, reply.nonce, approved=reply.approved)


async def _approved_elsewhere(desk: Desk, hash_: str) -> None:
    """Return once there is an approval that was not there. Raises ApprovalDenied once it is revoked."""
    before = await asyncio.to_thread(_standing, desk, hash_)
    while True:
        await asyncio.sleep(GLANCE_S)
        now = await asyncio.to_thread(_standing, desk, hash_)
        if now == "revoked" and now != before:
            raise ApprovalDenied(f"{hash_} was revoked while it waited for approval.", hash=hash_)
        if now not in (None, before):
            return


def _standing(desk: Desk, hash_: str) -> Record | Literal["revoked"] | None:
    gate = desk.factory.gate
    try:
        return "revoked" if gate.records.is_revoked(hash_) else gate.check(hash_, desk.workspace)
    except LymaError:
        return None


def unavailable(hash_: str, path: tuple[str, ...] = (), *, expired: bool = False) -> ApprovalUnavailable:
    """Nobody answered, or nobody could be asked. `path` names the agents above it."""
    whose = f", which {path[-1]} may run," if path else ""
    state = "is not approved any more" if expired else "is not approved"
    return ApprovalUnavailable(
        f"{hash_}{whose} {state} and nobody answered here; a person approves it with `lyma approve {hash_[:19]}` in a "
        "terminal, in this folder.",
        hash=hash_,
    )


def request_of(questioned: Questioned, path: tuple[str, ...] = ()) -> ApprovalRequest:
    """What a face shows and asks: all of the presentation, and the folder that an approval would be for."""
    asked, presentation = questioned.asked, questioned.presentation
    return ApprovalRequest(
        hash=asked.subject.hash,
        nonce=asked.nonce,
        title=presentation.title,
        summary=presentation.summary,
        manifest=dict(asked.bundle.facts),
        text=f"For {visible(asked.subject.workspace)}\n\n{presentation.text}",
        path=path,
    )
