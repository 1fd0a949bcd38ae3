"""Attends to one child: takes what it asks for, in the only order that is allowed, until it has given an output that fits."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

from attrs import define, field

from lyma_server.errors import StreamInterrupted
from lyma_server.factory.budget import Amount, Exhausted
from lyma_server.factory.channel import ChannelFault
from lyma_server.factory.conversation import Misbehaved
from lyma_server.factory.requests import MOST_EVENTS, MOST_REQUESTS, check_hello, checked, one_line
from lyma_server.router.chat import ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from lyma_server.factory.asking import Caller
    from lyma_server.factory.budget import Budget
    from lyma_server.factory.changes import Returning
    from lyma_server.factory.conversation import Conversation
    from lyma_server.factory.outcome import EventKind
    from lyma_server.factory.sandbox_port import ChannelPort
    from lyma_server.factory.transcript import Transcript
    from lyma_server.protocol.base import Json
    from lyma_server.router.chat import Completed, Message

MOST_INTERRUPTIONS = 2
"""Answers in a row that may break off before the run is given up."""

WATCH: Final = "watch"
WATCH_S: Final = 1.0
TELL_S: Final = 0.2


class SchemaMismatch(Exception):
    """The output did not fit, however often the model was told; the message says why."""


class ModelRefused(Exception):
    """The model would not do it."""


class ChildGone(Exception):
    """The child ended before it gave an output."""


class RunsOthers(Protocol):
    """Runs an agent below this one, and gives the reply for it."""

    async def __call__(self, hash_: str, input_: Json) -> dict[str, Json]: ...


@define
class Dialogue:
    """`may_go_on` raises where the run has lost its approval; `tell` reaches the person."""

    channel: ChannelPort
    conversation: Conversation
    caller: Caller
    returning: Returning
    budget: Budget
    transcript: Transcript
    most_output: int
    may_go_on: Callable[[], None]
    delegate: RunsOthers
    tell: Callable[[EventKind, str], None]
    _last_id: int = 0
    _events: int = 0
    _heard: int = 0
    _waiting: dict[asyncio.Task[None], str] = field(factory=dict)

    async def attend(self, start: dict[str, Json]) -> dict[str, Json]:
        """From the first message to the output. Raises what ends the run otherwise; then the child must be stopped."""
        check_hello(await self.channel.receive())
        await self.channel.send(start)
        return await self.serve()

    async def serve(self) -> dict[str, Json]:
        """From the first request to the output. Raises as `attend`."""
        reading = asyncio.create_task(self.channel.receive())
        self._waiting[asyncio.create_task(self._watch())] = WATCH
        try:
            while True:
                await asyncio.wait({reading, *self._waiting}, return_when=asyncio.FIRST_COMPLETED)
                self._collect()
                if not reading.done():
                    continue
                message = reading.result()
                reading = asyncio.create_task(self.channel.receive())
                output = await self._hear(message)
                if output is not None:
                    return output
        except BaseException:
            await self._tell_end()
            raise
        finally:
            await _abandon({reading, *self._waiting})

    async def _watch(self) -> None:
        """Look now and then whether the approval still holds: a tool or a model may take long."""
        while True:
            await asyncio.sleep(WATCH_S)
            self.may_go_on()

    async def _tell_end(self) -> None:
        """Tell the child to end. It may not listen; then it is killed soon."""
        with suppress(ChannelFault, TimeoutError):
            async with asyncio.timeout(TELL_S):
                await self.channel.send({"type": "cancel"})

    def _collect(self) -> None:
        """Take leave of the requests that are answered. Raises what went wrong in one."""
        for task in [task for task in self._waiting if task.done()]:
            del self._waiting[task]
            task.result()

    async def _hear(self, message: dict[str, Any] | None) -> dict[str, Json] | None:
        """Take one message; the output, where it is that and fits."""
        if message is None:
            raise ChildGone
        self._last_id = checked(message, self._last_id)
        self._heard += 1
        if self._heard > MOST_REQUESTS:
            raise Misbehaved("too many messages")
        kind = message["type"]
        if self.conversation.bundle.kind == "factory" and kind not in {"event", "llm.step"}:
            raise Misbehaved(f"a {kind}, which is not for a factory")
        if kind == "event":
            self._note_event(message["text"])
        elif kind == "agent.run":
            self._begin(kind, self._run_other(message), alongside="agent.run")
        elif kind == "llm.step":
            self._begin(kind, self._step(message))
        elif kind == "put_file":
            await self._put(message)
        elif kind == "result":
            return await self._judge(message)
        else:
            raise Misbehaved("a second hello")
        return None

    def _begin(self, kind: str, request: Coroutine[Any, Any, None], alongside: str = "") -> None:
        if any(each not in {alongside, WATCH} for each in self._waiting.values()):
            request.close()
            raise Misbehaved(f"a {kind} while something else is in flight")
        self._waiting[asyncio.create_task(request)] = kind

    def _refuse_meanwhile(self, kind: str) -> None:
        if any(each != WATCH for each in self._waiting.values()):
            raise Misbehaved(f"a {kind} while something else is in flight")

    def _note_event(self, text: str) -> None:
        self._events += 1
        if self._events > MOST_EVENTS:
            raise Misbehaved("too many events")
        self.transcript.note("event", text=one_line(text))
        self.tell("progress", text)

    # --- the model

    async def _step(self, message: dict[str, Any]) -> None:
        self.conversation.take(message["append"])
        self.transcript.note("results", results=message["append"])
        completed = await self._ask()
        calls = self._take_calls(completed)
        while self.conversation.is_waiting():
            completed = await self._ask()
            calls = self._take_calls(completed)
        await self._reply(message, text=completed.message.text, tool_calls=calls, left=self._left())

    async def _ask(self) -> Completed:
        interruptions = 0
        while True:
            self.may_go_on()
            self.tell("model", f"model call {self.caller.calls + 1}")
            try:
                completed = await self.caller.ask(self.conversation.request())
            except StreamInterrupted:
                interruptions += 1
                self.transcript.note("interrupted")
                if interruptions > MOST_INTERRUPTIONS:
                    raise
                continue
            self._note_answer(completed)
            if completed.finish == "refusal":
                raise ModelRefused
            return completed

    def _take_calls(self, completed: Completed) -> list[Json]:
        if calls := _calls(completed.message):
            self.budget.spend(Amount(tool_calls=len(calls)))
        found: list[Json] = []
        for call in self.conversation.hear(completed):
            name = self.conversation.tool_name(call)
            self.tell("tool", f"{name} {json.dumps(call.arguments, ensure_ascii=False)}")
            found.append({"id": call.id, "name": name, "arguments": call.arguments})
        return found

    def _note_answer(self, completed: Completed) -> None:
        message = completed.message
        calls = [[call.name, call.arguments] for call in _calls(message)]
        origin = f"{message.origin.provider} {message.origin.model}" if message.origin else ""
        self.transcript.note("answer", model=origin, text=message.text, calls=calls, finish=completed.finish)

    def _left(self) -> dict[str, Json]:
        left = self.budget.left()
        names = ("turns", "tool_calls", "tokens", "cost_micros")
        return {**{name: getattr(left, name) for name in names}, "seconds": int(self.budget.seconds_left())}

    # --- other agents, files, the output

    async def _run_other(self, message: dict[str, Any]) -> None:
        await self._reply(message, **await self.delegate(message["hash"], message["input"]))

    async def _put(self, message: dict[str, Any]) -> None:
        self._refuse_meanwhile("put_file")
        self.returning.put(message["path"], message["base64"], more=message["more"])
        if not message["more"]:
            self.transcript.note("file", path=message["path"])
        await self._reply(message, accepted=True)

    async def _judge(self, message: dict[str, Any]) -> dict[str, Json] | None:
        self._refuse_meanwhile("result")
        output = self.conversation.read(message["output"])
        if len(json.dumps(output, ensure_ascii=False).encode()) > self.most_output:
            raise Exhausted("bytes_output", self.budget.path)
        problem = await asyncio.to_thread(self.conversation.judge, output)
        if problem:
            self.transcript.note("refused_output", problem=problem)
            if not self.conversation.repair(problem):
                raise SchemaMismatch(problem)
            await self._reply(message, accepted=False, problem=problem)
            return None
        if not self.returning.is_whole():
            raise Misbehaved("a result before a file was whole")
        self.may_go_on()
        await self._reply(message, accepted=True)
        return output  # type: ignore[no-any-return]  # it fits a schema of type object

    async def _reply(self, message: dict[str, Any], **facts: Json) -> None:
        await self.channel.send({"type": "reply", "id": message["id"], **facts})


async def _abandon(tasks: set[asyncio.Task[Any]]) -> None:
    """Cancel and wait, so that provider requests are closed and what they held is settled."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _calls(message: Message) -> list[ToolCall]:
    return [block for block in message.blocks if isinstance(block, ToolCall)]
