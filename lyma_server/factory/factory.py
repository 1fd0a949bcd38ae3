"""The factory as a face sees it: compile, list, present, ask, answer, revoke, remove. It runs nothing."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal, TypeAlias

from attrs import frozen

from lyma_server.errors import ApprovalDenied, ApprovalExpired, ApprovalRequired, HashMismatch, UsageError
from lyma_server.factory import trees
from lyma_server.factory.bundle import TREE
from lyma_server.factory.gate import Gate
from lyma_server.factory.presentation import Presentation, present
from lyma_server.factory.reader import examine_folder
from lyma_server.factory.store import Store

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from lyma_server.config.model import CeilingSettings
    from lyma_server.config.paths import Home
    from lyma_server.factory.approval import Channel, Record
    from lyma_server.factory.bundle import Bundle
    from lyma_server.factory.compile import Examined
    from lyma_server.factory.gate import Asked
    from lyma_server.protocol.base import Json

Standing: TypeAlias = Literal["approved", "waiting", "expired", "revoked", "untrusted", "damaged"]


@frozen
class Row:
    """A compiled agent in a list. `name` and `purpose` are empty where it is damaged."""

    hash: str
    name: str
    purpose: str
    standing: Standing


@frozen
class Questioned:
    """A question to a person, with what must be shown."""

    asked: Asked
    presentation: Presentation


class Factory:
    """Compiled agents and their approvals in one home. Raises UsageError and the errors of approvals."""

    def __init__(self, home: Home, ceiling: CeilingSettings, gate: Gate | None = None) -> None:
        self.ceiling = ceiling
        self.store = Store(home.agents)
        self._trees = home.trees
        self.gate = gate or Gate(home)

    def compile(
        self, folder: Path, *, text: bytes | None = None, provenance: Mapping[str, Json] | None = None
    ) -> Examined:
        """Compile the agent in `folder` and store its bundle; `text` stands in for its agent.toml."""
        examined = examine_folder(folder, self.ceiling, text=text)
        if examined.bundle is not None:
            self.store.save(examined.bundle, {"compiled_at": int(time.time()), **(provenance or {})})
        return examined

    def rows(self, workspace: Path) -> tuple[Row, ...]:
        """All compiled agents, by name, with how each stands in `workspace`."""
        rows = (self._row(hash_, workspace) for hash_ in self.store.hashes())
        return tuple(sorted(rows, key=lambda row: (row.name, row.hash)))

    def view(self, hash_: str) -> tuple[Bundle, Presentation]:
        """An agent, and what a person is shown of it."""
        bundle = self.store.load(hash_)
        return bundle, present(bundle, self.approved_before(bundle.name), self.store.load)

    def question(self, hash_: str, workspace: Path, channel: Channel) -> Questioned:
        """Ask whether an agent may run in `workspace`; all of `presentation` must reach the person before the answer."""
        bundle, presentation = self.view(hash_)
        return Questioned(self.gate.ask(bundle, workspace, presentation.shown, channel), presentation)

    def answer(self, questioned: Questioned, hash_: str, nonce: str, *, approved: bool) -> Record:
        """Take the person's answer, which must echo hash and nonce; the bundle is verified once more before it counts."""
        self.store.load(questioned.asked.subject.hash)
        return self.gate.answer(questioned.asked, hash_, nonce, approved=approved)

    def remove(self, hash_: str) -> int:
        """Remove an agent, with a program that no other agent has, and take its approvals back; how many there were.

        Raises UsageError where there is none, or it runs.
        """
        revoked: list[int] = []
        tree = self._tree_of(hash_)
        self.store.remove(hash_, lambda: revoked.append(self.gate.forget(hash_)))
        if tree is not None and tree not in map(self._tree_of, self.store.hashes()):
            trees.discard(self._trees, tree)
        return sum(revoked)

    def _tree_of(self, hash_: str) -> bytes | None:
        """The listing of an agent's own program; null where it has none, or is damaged."""
        try:
            return self.store.load(hash_).files.get(TREE)
        except (UsageError, HashMismatch):
            return None

    def admit(self, hash_: str, workspace: Path) -> Bundle:
        """The verified bytes of an agent that is approved for `workspace`; run these and never open the path again.

        Raises UsageError, HashMismatch, ApprovalRequired, ApprovalExpired or ApprovalDenied. Agents that it may run are to
        be admitted each by itself.
        """
        bundle = self.store.load(hash_)
        self.gate.check(hash_, workspace)
        return bundle

    def approved_before(self, name: str) -> Bundle | None:
        """The bundle that was approved last under a name, if it is still there and sound."""
        for record in self.gate.records.all():
            if record.name == name:
                try:
                    return self.store.load(record.hash)
                except (UsageError, HashMismatch):
                    continue
        return None

    def _row(self, hash_: str, workspace: Path) -> Row:
        try:
            bundle = self.store.load(hash_)
        except (UsageError, HashMismatch):
            return Row(hash_, "", "", "damaged")
        return Row(hash_, bundle.name, bundle.facts["spec"]["purpose"], self.standing(hash_, workspace))

    def standing(self, hash_: str, workspace: Path) -> Standing:
        """How an agent whose bundle is sound stands in `workspace`."""
        try:
            if self.gate.records.is_revoked(hash_):
                return "revoked"
            self.gate.check(hash_, workspace)
        except ApprovalRequired:
            return "waiting"
        except ApprovalExpired:
            return "expired"
        except (ApprovalDenied, HashMismatch):
            return "untrusted"
        return "approved"
