"""Lyma's editor face over a core that does as the prompt says. Run with `python -m tests.editors.fake_server`."""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from lyma_server.agent.ports import FileChange, Question
from lyma_server.config.paths import Home
from lyma_server.editor.app import serve_with
from lyma_server.errors import AllFailed, ConfigError, SessionBusy
from lyma_server.protocol.events import (
    Event,
    EventBody,
    ItemCompleted,
    ItemDelta,
    ItemStarted,
    Route,
    TurnCompleted,
    TurnStarted,
)
from lyma_server.protocol.items import TextItem
from lyma_server.protocol.messages import AskParams, AskResult, ModelsResult, ProviderStatus

SECRET = "canary-0123456789abcdef"


class FakeTurn:
    """Runs the prompt: its first word is the name of a method, the rest its argument."""

    _numbers = itertools.count(1)

    def __init__(self, params: AskParams, workspace: Any, person: Any, listener: Any) -> None:
        number = next(self._numbers)
        self.session, self.turn = params.session or f"s{number}", f"t{number}"
        self.params, self.workspace, self.person, self.listener = params, workspace, person, listener
        self.text = ""
        self._seq = 0
        self._work: asyncio.Future[None] | None = None
        self._stopped = False
        self._task = asyncio.ensure_future(self._run())

    async def result(self) -> AskResult:
        return await asyncio.shield(self._task)

    def cancel(self) -> None:
        self._stopped = True
        if self._work is not None:
            self._work.cancel()

    def emit(self, body: EventBody) -> None:
        self._seq += 1
        self.listener(Event(session=self.session, turn=self.turn, seq=self._seq, body=body))

    def say(self, text: str) -> None:
        self.text += text
        self.emit(ItemDelta(item="i1", text=text))

    async def _run(self) -> AskResult:
        prompt = self.params.prompt if isinstance(self.params.prompt, str) else "blocks"
        word, _, rest = prompt.partition(" ")
        stop_reason = "end_turn"
        self.emit(TurnStarted(prompt=prompt[:100]))
        self.emit(ItemStarted(item=TextItem(id="i1")))
        try:
            self._work = asyncio.ensure_future(getattr(self, f"do_{word}", self.do_say)(rest))
            if self._stopped:
                self._work.cancel()
            await self._work
        except asyncio.CancelledError:
            stop_reason = "cancelled"
        finally:
            self.emit(ItemCompleted(item=TextItem(id="i1", text=self.text)))
            self.emit(Route(provider="fake", model="m", class_="ok", next="done", ms=1))
            self.emit(TurnCompleted(stop_reason=stop_reason))
        return AskResult(session=self.session, turn=self.turn, stop_reason=stop_reason, text=self.text)

    async def do_say(self, rest: str) -> None:
        for word in rest.split() or ["ok"]:
            self.say(word + " ")
            await asyncio.sleep(0)

    async def do_length(self, rest: str) -> None:
        self.say(str(len(rest.encode())))

    async def do_hang(self, _rest: str) -> None:
        await asyncio.Event().wait()

    async def do_stream(self, pause: str) -> None:
        for number in itertools.count():
            self.say(f"{number} ")
            await asyncio.sleep(float(pause or 0))

    async def do_flood(self, size: str) -> None:
        for _ in range(int(size)):
            self.say("x" * 1024)
            await asyncio.sleep(0)

    async def do_endless(self, marker: str) -> None:
        try:
            while True:
                self.say("x" * 1024)
                await asyncio.sleep(0.0005)
        except asyncio.CancelledError:
            Path(marker).touch()
            raise

    async def do_print(self, rest: str) -> None:
        print("print:", rest)
        sys.stdout.flush()
        os.write(1, b"descriptor 1\n")
        os.system("echo child; cat; echo descriptors: /proc/self/fd/* >&2")
        self.say("printed")

    async def do_read(self, path: str) -> None:
        found = await self.workspace.read(Path(path))
        self.say(f"{found.from_editor}:{found.text}")

    async def do_root(self, _rest: str) -> None:
        self.say(str(self.workspace.root))

    async def do_edit(self, rest: str) -> None:
        path, old, new = rest.split("|")
        found = await self.workspace.read(Path(path))
        await self.workspace.apply(FileChange(Path(path), found.text.replace(old, new), found.base))
        self.say("edited")

    async def do_edit_confirmed(self, rest: str) -> None:
        path, old, new = rest.split("|")
        found = await self.workspace.read(Path(path))
        change = FileChange(Path(path), found.text.replace(old, new), found.base, confirm=True)
        self.say(f"{self.workspace.confirms(change.path)} ")
        await self.workspace.apply(change)

    async def do_delete(self, path: str) -> None:
        found = await self.workspace.read(Path(path))
        await self.workspace.apply(FileChange(Path(path), None, found.base))

    async def do_edit_late(self, rest: str) -> None:
        path, old, new = rest.split("|")
        found = await self.workspace.read(Path(path))
        self.say("read ")
        while (await self.workspace.read(Path(path))).text == found.text:
            await asyncio.sleep(0.01)
        await self.workspace.apply(FileChange(Path(path), found.text.replace(old, new), found.base))

    async def do_confirm(self, rest: str) -> None:
        self.say(str(await self.person.confirm(Question("command", "Run this?", rest))))

    async def do_selections(self, _rest: str) -> None:
        active = self.params.context.active
        self.say(str([(s.start.character, s.end.character) for s in active.selections]))

    async def do_fill(self, _rest: str) -> None:
        raise OSError(28, "No space left on device", "/home/somebody/file.py")

    async def do_crash(self, _rest: str) -> None:
        raise RuntimeError(f"{SECRET} in /home/somebody/file.py")

    async def do_fail(self, _rest: str) -> None:
        raise AllFailed(f"No provider answered; the key {SECRET} is refused.", attempts=[{"status_text": SECRET}])

    async def do_spawn(self, marker: str) -> None:
        await asyncio.create_subprocess_exec("sleep", marker)
        await asyncio.Event().wait()

    async def do_block(self, seconds: str) -> None:
        time.sleep(float(seconds))


class FakeCore:
    sandbox = "none"

    def __init__(self, root: Path) -> None:
        self.home = Home(root)
        self.router = FakeRouter()
        self.redactor = SimpleNamespace(redact=lambda text: text.replace(SECRET, "[redacted]"))
        self.busy: dict[str, FakeTurn] = {}

    def start(self, params: AskParams, workspace: Any, person: Any, listener: Any) -> FakeTurn:
        running = self.busy.get(params.session or "")
        if running is not None and not running._task.done():
            raise SessionBusy("The session has a turn under way.", turn=running.turn)
        turn = FakeTurn(params, workspace, person, listener)
        self.busy[turn.session] = turn
        return turn

    def provider_status(self) -> tuple[ProviderStatus, ...]:
        return (ProviderStatus(name="fake", api="openai", model="m"),)

    async def models(self, provider: str | None) -> ModelsResult:
        if provider == "slow":
            await asyncio.Event().wait()
        return ModelsResult()

    async def close(self) -> None: ...


class FakeRouter:
    async def warm_up(self) -> None: ...


def build() -> Any:
    if os.environ.get("FAKE_BROKEN"):
        raise ConfigError("config.toml has no order.", file="config.toml", line=3, key="order")
    time.sleep(float(os.environ.get("FAKE_BUILD_S", "0")))
    root = Path(os.environ.get("LYMA_HOME") or tempfile.mkdtemp())
    return FakeCore(root)


if __name__ == "__main__":
    sys.exit(serve_with(build))
