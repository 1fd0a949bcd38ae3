"""A server on pygls as it comes, for the tests that show what Lyma mends. Run with `python -m tests.editors.stock_server`."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import subprocess
import time
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer

logging.basicConfig(level=logging.INFO)
server = LanguageServer("stock", "1")


@server.feature("lyma/ask")
async def ask(ls: LanguageServer, params: Any) -> Any:
    word, _, rest = params.prompt.partition(" ")
    if word == "crash":
        raise RuntimeError(rest)
    if word == "print":
        print(rest)
        subprocess.run(["sh", "-c", "echo child"], check=True)
    if word == "confirm":
        await ls.window_show_message_request_async(
            types.ShowMessageRequestParams(type=types.MessageType.Info, message=rest)
        )
    if word == "hang":
        await asyncio.sleep(0.5)
    if word == "endless":
        await flood(ls, Path(rest))
    return {"text": rest}


async def flood(ls: LanguageServer, marker: Path) -> None:
    try:
        for number in itertools.count():
            ls.protocol.notify("lyma/event", {"text": "x" * 1024, "number": number})
            await asyncio.sleep(0)
    except asyncio.CancelledError:
        marker.touch()
        raise


@server.feature("lyma/status")
async def status(params: Any) -> Any:
    return {}


@server.command("lyma.cancel")
async def cancel(ls: LanguageServer, *arguments: Any) -> Any:
    return json.loads(json.dumps(arguments[0]))


@server.feature("lyma/work")
@server.thread()
def work(params: Any) -> Any:
    time.sleep(5)


server.start_io()
