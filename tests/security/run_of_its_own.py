"""A program that runs an agent in the real sandbox and never comes to an end by itself: to be killed."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from lyma_server.factory import staging
from lyma_server.factory.sandbox import Sandbox
from tests.agents import bundle
from tests.run_desk import Desk
from tests.scripted_model import ScriptedModel, call

BUSY = "def run(args):\n    while True:\n        pass\n"


async def main() -> None:
    staging.FOR_ROOT = Path(sys.argv[2])
    desk = Desk(Path(sys.argv[1]), ScriptedModel(call(("count", {"text": "x"}))), Sandbox())
    running = asyncio.create_task(desk.run(bundle({"tools/count.py": BUSY})))
    while not any(event.kind == "tool" for event in desk.events):
        await asyncio.sleep(0.01)
    print("busy", flush=True)
    await running


asyncio.run(main())
