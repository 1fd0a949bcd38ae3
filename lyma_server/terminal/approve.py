"""`lyma approve`: a person at a terminal reads an agent and lets it run, by the last digits of its hash."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from typing import TYPE_CHECKING

from lyma_server.errors import ApprovalUnavailable, UsageError
from lyma_server.terminal.agents import SHORT, open_factory, own_workspace

if TYPE_CHECKING:
    from argparse import Namespace
    from pathlib import Path

    from lyma_server.agent.ports import ApprovalReply
    from lyma_server.factory.approval import Record
    from lyma_server.factory.factory import Factory, Questioned
    from lyma_server.terminal.commands import Subparsers

FEWEST_DIGITS = 6
"""Of a hash, to name an agent by."""


def add_parser(subparsers: Subparsers) -> None:
    """`lyma approve [HASH] | --list | --revoke HASH`."""
    parser = subparsers.add_parser(
        "approve",
        description="Read an agent in full and let it run in this folder, for 90 days. It needs a person at a terminal.",
        epilog="Examples: lyma approve sha256:3f9a12; lyma approve --list; lyma approve --revoke sha256:3f9a12. Revoking "
        "holds for every folder and ends what runs.",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("hash", metavar="HASH", nargs="?", help="the hash, or its beginning; lyma agents lists them")
    which.add_argument("--list", action="store_true", help="list what is approved and what was revoked")
    which.add_argument("--revoke", metavar="HASH", help="take every approval of an agent back")


def run(args: Namespace) -> int:
    """Do what was asked for."""
    factory = open_factory()
    if args.list:
        return _list(factory)
    if args.revoke is not None:
        return _revoke(factory, args.revoke)
    workspace = own_workspace()
    return _approve(factory, _chosen(factory, args.hash, workspace), workspace)


def _chosen(factory: Factory, named: str | None, workspace: Path) -> str:
    if named is not None:
        return factory.store.find(named)
    waiting = [row for row in factory.rows(workspace) if row.standing in {"waiting", "expired"}]
    if len(waiting) != 1:
        listed = ", ".join(f"{row.name} {row.hash[:SHORT]}" for row in waiting[:9]) or "none"
        raise UsageError(f"Name the hash to approve; waiting in this folder: {listed}.")
    return waiting[0].hash


def _approve(factory: Factory, hash_: str, workspace: Path) -> int:
    questioned = factory.question(hash_, workspace, "terminal")
    try:
        reply = asyncio.run(_ask(questioned))
        if reply is None:
            raise ApprovalUnavailable(
                f"{hash_} is not approved: that takes a person at a terminal, who answers there.", hash=hash_
            )
        record = factory.answer(questioned, reply.hash, reply.nonce, approved=reply.approved)
    finally:
        factory.gate.withdraw(questioned.asked)
    sys.stdout.write(f"Approved for {record.workspace} until {_day(record.expires_at)}.\n")
    return 0


async def _ask(questioned: Questioned) -> ApprovalReply | None:
    from lyma_server.agent.approvals import request_of
    from lyma_server.terminal.person import TerminalPerson

    printed = threading.Event()
    printed.set()
    return await TerminalPerson(lambda: printed).approve(request_of(questioned))


def _list(factory: Factory) -> int:
    from lyma_server.terminal.table import table

    records = factory.gate.records
    rows: list[tuple[str, ...]] = [_row(record) for record in records.all()]
    rows += [("-", each[:SHORT], "revoked", "-", "-", "-") for each in records.revoked()]
    if rows:
        sys.stdout.write(table(("agent", "hash", "approved", "until", "in", "folder"), rows))
    else:
        sys.stdout.write("Nothing is approved; `lyma agents` lists what could be.\n")
    broken = factory.gate.audit.verify()
    if broken is not None:
        sys.stderr.write(f"The log of approvals was tampered with or damaged: line {broken.line} {broken.problem}.\n")
    return 0


def _row(record: Record) -> tuple[str, ...]:
    approved, until = _day(record.approved_at), _day(record.expires_at)
    return record.name, record.hash[:SHORT], approved, until, record.channel, record.workspace


def _revoke(factory: Factory, named: str) -> int:
    known = {*factory.store.hashes(), *(record.hash for record in factory.gate.records.all())}
    digits = named.lower().removeprefix("sha256:")
    if len(digits) < FEWEST_DIGITS:
        raise UsageError(f"{named!r} is too short; give at least {FEWEST_DIGITS} digits of the hash.")
    found = [each for each in sorted(known) if each.startswith(f"sha256:{digits}")]
    if len(found) != 1:
        problem = "names no compiled or approved agent" if not found else "is the beginning of more than one hash"
        raise UsageError(f"{named[:80]!r} {problem}; `lyma approve --list` shows them.")
    count = factory.gate.revoke(found[0])
    approvals = "1 approval" if count == 1 else f"{count} approvals"
    sys.stdout.write(f"Revoked {found[0]} ({approvals}); only `lyma approve` in a terminal approves it again.\n")
    return 0


def _day(moment: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(moment))
