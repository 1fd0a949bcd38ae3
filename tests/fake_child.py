"""A sandbox without walls: the child is a coroutine of the test's that speaks the real messages over a real pair of sockets."""

from __future__ import annotations

import asyncio
import base64
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from attrs import define, field, frozen

from lyma_server.factory.channel import Channel

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from lyma_server.errors import SandboxUnavailable
    from lyma_server.factory.sandbox import Launch

    Life = Callable[["Child"], Awaitable[None]]


class Child:
    """The child's end: asks, and hears the replies."""

    def __init__(self, channel: Channel, launch: Launch) -> None:
        self.channel, self.launch = channel, launch
        self.start: dict[str, Any] = {}
        self.heard: list[dict[str, Any]] = []
        self._number = 0

    async def hello(self) -> None:
        await self.channel.send({"type": "hello", "abi": 1})
        self.start = await self.channel.receive()

    async def begin(self, kind: str, **fields: Any) -> int:
        self._number += 1
        await self.channel.send({"type": kind, "id": self._number, **fields})
        return self._number

    async def ask(self, kind: str, **fields: Any) -> dict[str, Any]:
        number = await self.begin(kind, **fields)
        while True:
            reply = await self.channel.receive()
            if reply is None or reply["type"] == "cancel":
                raise asyncio.CancelledError
            self.heard.append(reply)
            if reply["id"] == number:
                return reply

    async def until_told(self) -> None:
        """Wait until the parent wants the end."""
        while (message := await self.channel.receive()) is not None and message["type"] != "cancel":
            self.heard.append(message)

    async def step(self, *results: tuple[str, str]) -> dict[str, Any]:
        append = [{"call": call, "text": text, "is_error": False} for call, text in results]
        return await self.ask("llm.step", append=append)

    async def put(self, path: str, content: bytes | str, *, more: bool = False) -> dict[str, Any]:
        content = content.encode() if isinstance(content, str) else content
        return await self.ask("put_file", path=path, base64=base64.b64encode(content).decode(), more=more)

    async def result(self, output: Any) -> dict[str, Any]:
        return await self.ask("result", output=output)


async def obedient(child: Child) -> None:
    """As the runner does it: carries out no tool, answers "done" for each, and hands in what the model says."""
    await child.hello()
    results: tuple[tuple[str, str], ...] = ()
    while True:
        reply = await child.step(*results)
        results = tuple((call["id"], f"done {call['name']}") for call in reply["tool_calls"])
        text = reply["text"] if child.start["spec"]["output"]["schema"] else {"text": reply["text"]}
        if not results and (await child.result(text))["accepted"]:
            return


@frozen
class Ended:
    status: int = 0
    reason: str = "ended"
    output: str = ""


@define(eq=False)
class Inside:
    channel: Channel
    task: asyncio.Task[None]
    ended: Ended
    stops: list[float] = field(factory=list)

    async def stop(self, grace_s: float) -> Ended:
        self.stops.append(grace_s)
        await asyncio.wait({self.task}, timeout=grace_s)
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        self.channel.close()
        return self.ended


@define(eq=False)
class FakeSandbox:
    """`life` is what each child does; `lives` by agent's name go before it. `failure` is raised instead of a proof."""

    life: Life = obedient
    lives: dict[str, Life] = field(factory=dict)
    failure: SandboxUnavailable | None = None
    ended: Ended = Ended()
    launches: list[Launch] = field(factory=list)
    insides: list[Inside] = field(factory=list)
    staged: list[dict[str, bytes]] = field(factory=list)

    async def prove(self) -> None:
        if self.failure is not None:
            raise self.failure

    async def start(self, launch: Launch) -> Inside:
        self.launches.append(launch)
        self.staged.append(
            {
                str(path.relative_to(launch.staged)): path.read_bytes()
                for path in launch.staged.rglob("*")
                if path.is_file()
            }
        )
        ours, theirs = socket.socketpair()
        child = Child(Channel(theirs), launch)
        life = self.lives.get(launch.bundle.name, self.life)
        inside = Inside(Channel(ours), asyncio.create_task(_live(life, child)), self.ended)
        self.insides.append(inside)
        return inside

    @property
    def running(self) -> int:
        return sum(not inside.task.done() for inside in self.insides)


async def _live(life: Life, child: Child) -> None:
    try:
        with suppress(asyncio.CancelledError):
            await life(child)
    finally:
        child.channel.close()
