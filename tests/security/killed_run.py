"""A program that has files staged and an agent inside, and waits to be killed. Needs no more than evil_run."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path

from lyma_server.factory import staging
from lyma_server.factory.budget import Amount
from lyma_server.factory.sandbox import Launch, Sandbox
from tests.security.evil_run import evil_bundle


async def main(folder: Path) -> None:
    staging.FOR_ROOT = folder / "staging"
    place = staging.PrivatePlace.make(folder / "runs")
    reach = staging.Reach((("**",),), ((),))
    copying = staging.Copying(reach, Amount(files_read=99, bytes_read=9999), ("killed",), threading.Event())
    staging.copy_files(folder / "workspace", place.inside, copying)
    inside = await Sandbox().start(Launch(bundle=evil_bundle({}), staged=place.inside))
    await inside.channel.receive()
    print(place.inside, flush=True)
    await inside.wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
