"""A real server over its pipes, and a book of what it was asked, what it answered and what it showed."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections import Counter, defaultdict, deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from tests.processes import family, wait_until_gone
from tests.raw_client import RawClient
from tests.soak.evidence import gather
from tests.soak.witness import COMMAND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

DOUBT_S = 20.0
"""How long an answer may take before we look what the server is about."""
PATIENCE_S = 60.0
"""How long it may take on a machine that has much else to do."""
KEPT_EVENTS = 30
GONE_S = 5.0

Json = dict[str, Any]


class Inbox(list):
    """Takes the messages instead of a list that grows for ever, and sorts them."""

    def __init__(self) -> None:
        super().__init__()
        self.replies: defaultdict[Any, list[Json]] = defaultdict(list)
        self.shown: defaultdict[str, dict[str, list[Json]]] = defaultdict(dict)
        self.replayed: defaultdict[str, dict[str, list[Json]]] = defaultdict(dict)
        self.notices: Counter[str] = Counter()
        self.latest: defaultdict[str, deque[str]] = defaultdict(lambda: deque(maxlen=KEPT_EVENTS))

    def append(self, message: Json) -> None:
        if "method" not in message:
            self.replies[message["id"]].append(message)
        elif message["method"] == "lyma/event":
            self._hear(message["params"])

    def _hear(self, event: Json) -> None:
        book = self.replayed if event.get("replay") else self.shown
        items = book[event["session"]].setdefault(event["turn"], [])
        if not event.get("replay"):
            self.latest[event["session"]].append(f"{time.monotonic():.1f} {str(event)[:200]}")
        if event["type"] == "item.completed":
            items.append(event["item"])
        elif event["type"] == "notice" and not event.get("replay"):
            self.notices[event["text"][:100]] += 1


@attrs.define
class Asked:
    """A request that waits for its one reply. `then` gets it; `cancel_at` is when it is cancelled, if it is."""

    identity: int
    method: str
    params: Json
    at: float
    cancel_at: float | None = None
    then: Callable[[Json], None] = lambda _reply: None
    evidence: str = attrs.field(default="", repr=False)

    @property
    def session(self) -> str | None:
        return self.params.get("session")


class House:
    """A server at work. `turns_in_doubt` are those during which nothing could be written, `checked` counts the items that
    were compared. `beside` are all servers, this one perhaps among them, none of which may be forgotten while one is waited
    for; `provider` tells what the providers see.
    """

    def __init__(
        self, variables: dict[str, str], root: Path, beside: Iterable[House], provider: Callable[[], str]
    ) -> None:
        self.client = RawClient(COMMAND, read=False, env=variables)
        self.inbox = Inbox()
        self.client.messages = self.inbox
        self.client.start_reading()
        self.waiting: dict[int, Asked] = {}
        self.answered: set[int] = set()
        self.sessions: list[str] = []
        self.turns_in_doubt: set[str] = set()
        self.checked = 0
        self.outcomes: Counter[str] = Counter()
        self.ended = False
        self._home = Path(variables["LYMA_HOME"])
        self._beside, self._provider = beside, provider
        folders = [{"uri": root.as_uri(), "name": "root"}]
        self.call(
            "initialize", {"processId": os.getpid(), "rootUri": None, "capabilities": {}, "workspaceFolders": folders}
        )
        self.client.notify("initialized", {})

    @property
    def pid(self) -> int:
        return self.client.process.pid

    def ask(self, method: str, params: Json, **more: Any) -> Asked:
        """Send a request."""
        asked = Asked(self.client.request(method, params), method, params, time.monotonic(), **more)
        self.waiting[asked.identity] = asked
        return asked

    def tend(self) -> None:
        """Take what has come, cancel what is to be cancelled, and complain of what takes too long."""
        now = time.monotonic()
        for asked in list(self.waiting.values()):
            with self.client._arrived:
                reply = next(iter(self.inbox.replies.get(asked.identity, ())), None)
            if reply is not None:
                self._take(asked, reply)
                continue
            if asked.cancel_at is not None and now > asked.cancel_at:
                asked.cancel_at = None
                self.client.notify("$/cancelRequest", {"id": asked.identity})
            if now - asked.at > DOUBT_S and not asked.evidence:
                asked.evidence = self._evidence(asked)
                print(f"{asked} waits since {DOUBT_S:g} s\n{asked.evidence}")
            assert now - asked.at < PATIENCE_S, f"no reply to {asked}; after {DOUBT_S:g} s there was\n{asked.evidence}"
        assert self.client.process.poll() is None, f"the server ended: {bytes(self.client.errors)[-2000:]!r}"

    def _tend_all(self) -> None:
        """The others too: whatever is to be cancelled there is due now, and a reply that is late is late now."""
        for each in {self, *self._beside}:
            if not each.ended:
                each.tend()

    def _evidence(self, asked: Asked) -> str:
        """What can be seen of why there is no reply, from the newest session where the request names none."""
        session = asked.session or next(reversed(self.inbox.shown), None)
        parts = {
            **gather(self.client, self._home, session),
            "events": "\n".join(self.inbox.latest.get(session or "", ())),
            "providers": self._provider(),
        }
        return "\n".join(f"== {name}\n{text}" for name, text in parts.items())

    def settle(self) -> None:
        """Until nothing waits."""
        while self.waiting:
            self._tend_all()
            self.pause(0.02)

    def call(self, method: str, params: Json) -> None:
        """Send a request and wait for its reply alone."""
        asked = self.ask(method, params)
        while asked.identity in self.waiting:
            self._tend_all()
            self.pause(0.02)

    def pause(self, seconds: float) -> None:
        """Wait until something comes, at most so long."""
        with self.client._arrived:
            self.client._arrived.wait(seconds)

    def _take(self, asked: Asked, reply: Json) -> None:
        del self.waiting[asked.identity]
        self.answered.add(asked.identity)
        error = reply.get("error", {})
        assert "incident" not in error.get("data", {}), f"{asked} met a fault of ours: {reply}"
        kind = error.get("data", {}).get("kind") or error.get("code")
        result = reply.get("result")
        ending = result.get("stopReason", "ok") if isinstance(result, dict) else "ok"
        self.outcomes[f"{asked.method} {kind or ending}"] += 1
        asked.then(reply)

    def check_replies(self) -> None:
        """One for each request, and none for anything else."""
        with self.client._arrived:
            counts = {identity: len(found) for identity, found in self.inbox.replies.items()}
        assert {identity: count for identity, count in counts.items() if count != 1} == {}
        assert counts.keys() == self.answered

    # Its sessions

    def know(self, *found: Json) -> None:
        """Sessions that can be gone on with, each an object that names it."""
        self.sessions += [each["session"] for each in found if each.get("session") not in {None, *self.sessions}]

    def know_all_shown(self) -> None:
        """Those included whose answer was an error, or is owed for ever."""
        with self.client._arrived:
            shown = list(self.inbox.shown)
        self.know(*({"session": session} for session in shown))

    def inherit(self, other: House) -> None:
        """Go on with the sessions of a server that has ended."""
        with other.client._arrived:
            self.inbox.shown.update(other.inbox.shown)
        self.sessions = list(other.sessions)
        self.know_all_shown()
        self.turns_in_doubt |= other.turns_in_doubt

    def check_session(self, session: str) -> None:
        """Whatever was shown as complete is there, in its order; after a crash the turn may have an ending beside."""
        with self.client._arrived:
            self.inbox.replayed.pop(session, None)
            expected = {turn: list(items) for turn, items in self.inbox.shown.get(session, {}).items()}
        self.call("lyma/sessions", {"action": "load", "session": session})
        replayed = self.inbox.replayed.pop(session, {})
        for turn, items in expected.items():
            if turn not in self.turns_in_doubt:
                kept = replayed.get(turn, [])
                assert kept[: len(items)] == items, (
                    f"of turn {turn} of session {session} {items} was shown, {kept} is kept"
                )
                self.checked += len(items)

    def retire(self, session: str) -> None:
        """Check it and delete it, with all that runs in it."""
        self.check_session(session)
        self.call("lyma/sessions", {"action": "delete", "session": session})
        self.sessions.remove(session)
        for book in (self.inbox.shown, self.inbox.latest):
            book.pop(session, None)

    # Its ends

    def kill(self) -> None:
        """As a crash would. Nothing that it started lives on."""
        self.ended = True
        ours = family(self.pid)
        os.kill(self.pid, signal.SIGKILL)
        assert wait_until_gone(ours) < GONE_S
        self.client.__exit__()
        self.waiting.clear()
        with self.client._arrived:
            twice = {identity: found for identity, found in self.inbox.replies.items() if len(found) > 1}
        assert twice == {}

    def shut_down(self) -> None:
        """As an editor does that is closed."""
        self.settle()
        self.check_replies()
        ours = family(self.pid)
        self.call("shutdown", {})
        self.ended = True
        self.client.notify("exit")
        assert self.client.wait(PATIENCE_S) == 0
        assert wait_until_gone(ours) < GONE_S
        self.client.__exit__()

    def fill_disk(self) -> None:
        """From now on no file can grow: what it writes fails as on a full disk. Nothing is under way."""
        self._before = self._turns()
        self._limit_files(0)

    def empty_disk(self) -> None:
        self._limit_files(resource.RLIM_INFINITY)
        self.turns_in_doubt |= self._turns() - self._before

    def _turns(self) -> set[str]:
        return {turn for turns in self.inbox.shown.values() for turn in turns}

    def _limit_files(self, most: int) -> None:
        hard = resource.prlimit(self.pid, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (most, hard))
