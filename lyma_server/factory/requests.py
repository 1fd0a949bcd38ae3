"""What a run may say, held to its exact shape: anything else ends it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lyma_server.factory.conversation import Misbehaved
from lyma_server.factory.versions import RUNNER_ABI

if TYPE_CHECKING:
    from collections.abc import Mapping

_ANY: Final = object

SHAPES: Final[Mapping[str, Mapping[str, type]]] = {
    "hello": {"abi": int},
    "llm.step": {"id": int, "append": list},
    "agent.run": {"id": int, "hash": str, "input": _ANY},
    "event": {"text": str},
    "put_file": {"id": int, "path": str, "base64": str, "more": bool},
    "result": {"id": int, "output": _ANY},
}
"""By type, the other fields of a message and what each must be."""

MOST_EVENTS: Final = 1000
MOST_REQUESTS: Final = 50_000
"""Messages of one run in all; beyond it does nothing but keep its parent busy."""
LONGEST_EVENT: Final = 200
"""Characters; what is longer is cut."""


def checked(message: Mapping[str, Any], last_id: int) -> int:
    """Hold a message to its shape; the last id after it. Raises Misbehaved."""
    kind = message.get("type")
    shape = SHAPES.get(kind) if isinstance(kind, str) else None
    if shape is None:
        raise Misbehaved("a message of an unknown type")
    if set(message) != {"type", *shape}:
        raise Misbehaved(f"a {kind} with other fields than it has")
    for name, wanted in shape.items():
        if wanted is not _ANY and type(message[name]) is not wanted:
            raise Misbehaved(f"a {kind} whose {name} is of the wrong kind")
    if "id" not in shape:
        return last_id
    number: int = message["id"]
    if number <= last_id:
        raise Misbehaved(f"a {kind} whose id does not grow")
    return number


def check_hello(message: Mapping[str, Any] | None) -> None:
    """Hold the first message to what it must be. Raises Misbehaved."""
    if message is None:
        raise Misbehaved("nothing, and ended; budget.memory_mb may be too small for it")
    checked(message, 0)
    if message["type"] != "hello" or message["abi"] != RUNNER_ABI:
        raise Misbehaved("no hello, or one of another version")


def one_line(text: str) -> str:
    """A text of a run's for people: one line, short, without what a terminal would take for an order."""
    plain = "".join(character if character.isprintable() else " " for character in text)
    return plain if len(plain) <= LONGEST_EVENT else f"{plain[: LONGEST_EVENT - 1]}…"
