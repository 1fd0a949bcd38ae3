"""Where the time goes: what a cold `lyma ask` imports, and what a turn computes, by part."""

from __future__ import annotations

import asyncio
import cProfile
import os
import pstats
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from bench.cold import until_asked
from bench.measure import Report
from bench.sessions import provider, settings
from bench.tasks.stage import Nobody

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lyma_server.compose import Core

TURNS = 200
SHOWN = 8
ROOT = Path(__file__).resolve().parents[1]
INTERPRETER = "the interpreter and its library"
IMPORTED = re.compile(r"^import time:\s+(\d+) \|\s+\d+ \| +([\w.]+)$", re.MULTILINE)
INSTALLED = re.compile(r"site-packages/([A-Za-z]\w*)|lyma_server/(\w+)")


def report() -> Report:
    """Two tables of shares."""
    return Report(figures=(), table="\n\n".join([_imports(), asyncio.run(_turns())]))


def _imports() -> str:
    """By package, in the order of their own time."""
    with tempfile.TemporaryDirectory() as home, tempfile.NamedTemporaryFile("w+") as told:
        environ = os.environ | {"HOME": home, "LYMA_HOME": f"{home}/.lyma", "PYTHONPATH": str(ROOT)}
        words = (sys.executable, "-X", "importtime", "-m", "lyma_server", "ask", "hello")
        for _ in range(2):  # the first one writes what the second finds
            told.truncate(0)
            until_asked(words, environ, Path(home), stderr=told)
        rows = IMPORTED.findall(Path(told.name).read_text(encoding="utf-8"))
    spent: Counter[str] = Counter()
    for microseconds, module in rows:
        top = module.partition(".")[0]
        spent[INTERPRETER if top.lstrip("_") in sys.stdlib_module_names or top in sys.stdlib_module_names else top] += (
            int(microseconds)
        )
    return _table("a cold `lyma ask`: time spent importing", spent)


async def _turns() -> str:
    """By layer of ours and by package, in the order of their own time."""
    from lyma_server.compose import build_core

    with provider() as port, tempfile.TemporaryDirectory() as folder:
        core = build_core({**os.environ, **settings(port, Path(folder) / "home")})
        try:
            await _ask(core, Path(folder), 10)
            with cProfile.Profile() as profile:
                await _ask(core, Path(folder), TURNS)
        finally:
            await core.close()
    spent: Counter[str] = Counter()
    for part, seconds in _parts(pstats.Stats(profile)):
        spent[part] += round(seconds * 1e6)
    return _table("a turn without tools: time spent computing, under a profiler", spent)


async def _ask(core: Core, folder: Path, times: int) -> None:
    from lyma_server.agent.disk import DiskWorkspace
    from lyma_server.protocol.messages import AskParams

    for _ in range(times):
        turn = core.start(AskParams(prompt="hello"), DiskWorkspace(folder), Nobody(), lambda _event: None)
        await turn.result()


def _parts(stats: pstats.Stats) -> Iterator[tuple[str, float]]:
    """The own time of each function, by the part that its file belongs to; what waits for the provider is no computing."""
    for (file, _, name), (_, _, own, _, _) in stats.stats.items():  # type: ignore[attr-defined]
        if "poll" in name and "select.epoll" in name:
            continue
        found = INSTALLED.search(file)
        layer = found and found[2]
        yield (f"lyma_server.{layer}" if layer else found[1] if found else INTERPRETER), own


def _table(title: str, spent: Counter[str]) -> str:
    total = sum(spent.values())
    lines = [f"| {title} | share |", "|---|---|"]
    lines += [f"| {part} | {100 * share / total:.0f} % |" for part, share in spent.most_common(SHOWN)]
    rest = sum(share for _, share in spent.most_common()[SHOWN:])
    return "\n".join([*lines, f"| everything else | {100 * rest / total:.0f} % |"])
