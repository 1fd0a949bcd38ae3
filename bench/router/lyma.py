"""Lyma's router as it is in use: its state on disk, a ledger of every attempt, several keys and a second provider.

What a failure holds against a key or a provider is over after an hour; before each failing call the router's clock is put
on by one, so that the call meets the fault anew.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench.router.faults import FAULTS, PATIENCE_S, kind_of, path_of
from lyma_server.config.model import RouterSettings, Settings
from lyma_server.router.chat import ChatRequest, Completed, Message, Text, TextDelta
from lyma_server.router.database import Database
from lyma_server.router.providers.base import Key, Provider
from lyma_server.router.router import Router
from lyma_server.router.state import State
from lyma_server.secret import Secret

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

MESSAGES = (Message("user", (Text("question"),)),)
KEYS = tuple(Key(Secret(f"sk-bench-000{number}")) for number in range(1, 4))
ANSWER = "word0 "
LIMITED = Key(Secret("sk-bench-limited"))


class Clock:
    """Both clocks, which can be put on."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead

    def wall(self) -> float:
        return time.time() + self.ahead


async def stream(router: Router, attempts: int = 1) -> None:
    """One call, which must take this many attempts."""
    request, told = ChatRequest("Be brief.", MESSAGES, "session"), []
    last = [event async for event in router.stream(request, told.append)][-1]
    assert isinstance(last, Completed)
    assert len(told) == attempts


async def answer(router: Router, numbers: Iterator[int]) -> None:
    """One call of a new session, which must be answered, by however many attempts."""
    request = ChatRequest("Be brief.", MESSAGES, f"session {next(numbers)}")
    events = [event async for event in router.stream(request, lambda _attempt: None)]
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert text == ANSWER


async def calls(port: int, refusing_port: int) -> dict[str, Callable[[], Awaitable[None]]]:
    folder = Path(tempfile.mkdtemp(prefix="lyma-bench-"))
    clock = Clock()

    def provider(name: str, path: str, keys: tuple[Key, ...] = KEYS, at: int = port) -> Provider:
        return Provider(name, "openai", f"http://127.0.0.1:{at}/{path}/v1", "m", keys)

    def router(*providers: Provider) -> Router:
        state = State(Database(folder / "state.db"), wall=clock.wall, monotonic=clock.monotonic)
        built = Router(providers, Settings(), state)
        built._fleet._monotonic = clock.monotonic  # noqa: SLF001 - nothing but this benchmark puts clocks on
        return built

    async def fail_over(router: Router) -> None:
        clock.ahead += 3600
        await stream(router, attempts=2)

    second = provider("second", "short")
    routers = {
        "short": router(provider("first", "short"), second),
        "long": router(provider("first", "long"), second),
        "limited": router(provider("first", "short", (LIMITED,)), second),
        "refused": router(provider("down", "short", at=refusing_port), second),
    }
    for one in routers.values():
        await one.warm_up()
    steps = {name: partial(stream, one) for name, one in routers.items()}
    for name, fault in FAULTS.items():
        bad = provider("bad", path_of(name), at=refusing_port if fault.refused else port)
        state = State(Database(folder / f"{path_of(name)}.db"))
        patient = Settings(router=RouterSettings(first_content_s=PATIENCE_S, first_content_thinking_s=PATIENCE_S))
        others = (provider(other, "short") for other in ("second", "third"))
        steps[kind_of(name)] = partial(answer, Router((bad, *others), patient, state), itertools.count())
    return {
        **steps,
        "limited": partial(fail_over, routers["limited"]),
        "refused": partial(fail_over, routers["refused"]),
    }
