"""One contender in a process: `python worker.py CONTENDER PORT REFUSING_PORT`.

Reads `{"do": NAME, "count": N, "at_once": N}` a line and answers with the milliseconds of each call, the processor time a
call in milliseconds, its resident memory in MiB, and how many calls failed where `"tolerant"` allows that. The contender's
own module is all that it imports.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import resource
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Call = Callable[[], Awaitable[None]]


async def measure(call: Call, count: int, at_once: int, *, tolerant: bool = False) -> dict[str, object]:
    left = iter(range(count))
    times: list[float] = []
    failed: list[str] = []

    async def work() -> None:
        for _ in left:
            start = time.perf_counter()
            try:
                await call()
            except Exception as error:
                if not tolerant:
                    raise
                failed.append(repr(error)[:200])
            times.append((time.perf_counter() - start) * 1000)

    processor, start = time.process_time(), time.perf_counter()
    await asyncio.gather(*(work() for _ in range(at_once)))
    took = (time.perf_counter() - start) * 1000
    return {
        "times": times,
        "failed": failed,
        "each_ms": took / count,
        "cpu_ms": (time.process_time() - processor) * 1000 / count,
        "rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


async def serve(name: str, port: int, refusing_port: int, started: float) -> None:
    contender = importlib.import_module(f"bench.router.{name}")
    calls: dict[str, Call] = await contender.calls(port, refusing_port)
    print(json.dumps({"ready_ms": (time.perf_counter() - started) * 1000, "calls": list(calls)}), flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        order = json.loads(line)
        found = await measure(
            calls[order["do"]], order["count"], order["at_once"], tolerant=order.get("tolerant", False)
        )
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), time.perf_counter()))
