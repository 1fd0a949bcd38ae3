"""Speaks with an external factory: JSON-RPC 2.0, one object a line, on its stdin and stdout.

    > {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocol": 1}}
    < {"jsonrpc": "2.0", "id": 1, "result": {"protocol": 1}}
    > {"jsonrpc": "2.0", "id": 2, "method": "draft", "params": {"task": "...", "ceiling": {...}}}
    < {"jsonrpc": "2.0", "id": 2, "result": {"spec_toml": "..."}}
    > {"jsonrpc": "2.0", "id": 2, "method": "compile", "params": {"spec_toml": "..."}}
    < {"jsonrpc": "2.0", "id": 2, "result": {"files": [{"path": "tools/x.py", "base64": "..."}]}}
    < {"jsonrpc": "2.0", "method": "progress", "params": {"text": "..."}}            at any time
    > {"jsonrpc": "2.0", "method": "cancel"}                                          at any time; it ends

`compile` may also answer with `program`, the words of a program among these files: the agent is then one of kind "exec".
Meanwhile it may ask its model on descriptor 3 by `llm.step`, as agents do but without hello; `{"say": "..."}` in `append`
is what it tells the model.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from attrs import define

from lyma_server.errors import RunFailed
from lyma_server.factory.channel import ChannelFault
from lyma_server.factory.conversation import Misbehaved
from lyma_server.factory.dialogue import TELL_S, ChildGone, SchemaMismatch
from lyma_server.factory.fitting import complaints
from lyma_server.factory.requests import MOST_EVENTS, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lyma_server.factory.dialogue import Dialogue
    from lyma_server.factory.lines import Lines
    from lyma_server.protocol.base import Json

PROTOCOL: Final = 1

_FILE: Final = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "base64": {"type": "string"},
        "executable": {"type": "boolean"},
    },
    "required": ["path", "base64"],
    "additionalProperties": False,
}

RESULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "initialize": {
        "type": "object",
        "properties": {"protocol": {"const": PROTOCOL}},
        "required": ["protocol"],
    },
    "draft": {
        "type": "object",
        "properties": {"spec_toml": {"type": "string"}},
        "required": ["spec_toml"],
        "additionalProperties": False,
    },
    "compile": {
        "type": "object",
        "properties": {
            "files": {"type": "array", "items": _FILE},
            "program": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        },
        "required": ["files"],
        "additionalProperties": False,
    },
}
"""What each method gives back."""


@define
class Bridge:
    """One conversation with a factory. `dialogue` serves its descriptor 3, `tell` hears its progress."""

    lines: Lines
    dialogue: Dialogue
    tell: Callable[[str], None]
    _number: int = 0
    _told: int = 0

    async def ask(self, method: str, params: dict[str, Json]) -> dict[str, Json]:
        """Begin and ask for one thing. Raises what ends the run otherwise; then the child must be stopped."""
        serving = asyncio.create_task(self.dialogue.serve())
        asking = asyncio.create_task(self._ask_both(method, params))
        try:
            await asyncio.wait({serving, asking}, return_when=asyncio.FIRST_COMPLETED)
            if not asking.done() and isinstance(serving.exception(), ChildGone):
                await asyncio.wait({asking})  # it has closed its descriptor 3, as it may
            return asking.result() if asking.done() else serving.result()
        except BaseException:
            with suppress(ChannelFault, TimeoutError):
                async with asyncio.timeout(TELL_S):
                    await self.lines.send({"jsonrpc": "2.0", "method": "cancel"})
            raise
        finally:
            for task in (serving, asking):
                task.cancel()
            await asyncio.gather(serving, asking, return_exceptions=True)

    async def _ask_both(self, method: str, params: dict[str, Json]) -> dict[str, Json]:
        await self._ask("initialize", {"protocol": PROTOCOL})
        return await self._ask(method, params)

    async def _ask(self, method: str, params: dict[str, Json]) -> dict[str, Json]:
        self._number += 1
        await self.lines.send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        while True:
            message = await self.lines.receive()
            if message is None:
                raise ChildGone(f"no answer to {method}")
            if message.get("jsonrpc") != "2.0":
                raise Misbehaved("a line that is no JSON-RPC 2.0")
            if "method" not in message:
                return self._result(method, message)
            self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        params = message.get("params")
        text = params.get("text") if isinstance(params, dict) else None
        self._told += 1
        if message["method"] != "progress" or "id" in message or not isinstance(text, str) or self._told > MOST_EVENTS:
            raise Misbehaved("a notification that it may not send")
        self.tell(text)

    def _result(self, method: str, message: dict[str, Any]) -> dict[str, Json]:
        if message.get("id") != self._number or type(message.get("id")) is not int:
            raise Misbehaved("an answer to nothing")
        if set(message) == {"jsonrpc", "id", "error"}:
            error = message["error"]
            said = error.get("message") if isinstance(error, dict) else None
            raise RunFailed(f"The external factory could not {method}: {one_line(str(said)).rstrip('.')}.")
        if set(message) != {"jsonrpc", "id", "result"}:
            raise Misbehaved("an answer of the wrong shape")
        if problem := complaints(RESULTS[method], message["result"]):
            raise SchemaMismatch(problem)
        result: dict[str, Json] = message["result"]
        return result


def is_question(value: Json) -> bool:
    """Whether the input of a run is what a factory can be asked: a method and its parameters."""
    return (
        isinstance(value, dict)
        and set(value) == {"method", "params"}
        and value["method"] in ("draft", "compile")
        and isinstance(value["params"], dict)
    )
