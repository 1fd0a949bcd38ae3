"""The router against the bare SDK and against LiteLLM's Router, in turn in one run, each in its own process."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import define, field

from bench.measure import Figure, Report, figure
from bench.router import faults

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
LITELLM = Path(os.environ.get("LYMA_BENCH_LITELLM", ROOT / ".venv-bench/bin/python"))
"""A Python that has LiteLLM (requirements/bench.txt); without it the comparison is left out."""

ROUNDS = 15
BATCHES = {"short": 20, "whole": 20, "long": 4, "limited": 8, "refused": 8}
"""Calls in a row of each kind; short enough that the machine does not change its speed meanwhile."""
AT_ONCE = 16
NAMES = {"sdk": "bare openai SDK", "lyma": "Lyma", "litellm": "LiteLLM's Router"}


@define(eq=False)
class Contender:
    """A worker process. `medians` are of its batches, by kind of call; `costs` what else they told."""

    process: subprocess.Popen[str]
    ready_ms: float
    kinds: tuple[str, ...]
    medians: dict[str, list[float]] = field(factory=dict)
    costs: dict[str, list[dict[str, float]]] = field(factory=dict)

    def run(self, kind: str, count: int, at_once: int = 1) -> None:
        if kind not in self.kinds:
            return
        told = self._order({"do": kind, "count": count, "at_once": at_once})
        name = kind if at_once == 1 else f"{kind} at once"
        self.medians.setdefault(name, []).append(statistics.median(told["times"]))
        self.costs.setdefault(name, []).append(told)

    def warm_up(self, kind: str) -> None:
        if kind in self.kinds:
            self._order({"do": kind, "count": 3, "at_once": 1})

    def answered(self, kind: str, count: int) -> int:
        """How many of `count` calls were answered."""
        return count - len(self._order({"do": kind, "count": count, "at_once": 1, "tolerant": True})["failed"])

    def cost(self, name: str, what: str) -> float | None:
        told = self.costs.get(name)
        return statistics.median(one[what] for one in told) if told else None

    def _order(self, order: dict[str, object]) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@contextlib.contextmanager
def contest() -> Iterator[dict[str, Contender]]:
    """The stub provider and all contenders, for as long as the block."""
    with contextlib.ExitStack() as stack:
        closed = stack.enter_context(socket.socket())
        closed.bind(("127.0.0.1", 0))  # bound and not listening: it refuses, and nobody else gets the port
        stub = stack.enter_context(start(sys.executable, "bench.router.stub"))
        assert stub.stdout is not None
        ports = (stub.stdout.readline().strip(), str(closed.getsockname()[1]))
        pythons = {"sdk": sys.executable, "lyma": sys.executable}
        modules = {"sdk": "sdk", "lyma": "lyma", "litellm": "litellm_router"}
        if LITELLM.exists():
            pythons["litellm"] = str(LITELLM)
        contenders = {}
        for name, python in pythons.items():
            process = stack.enter_context(start(python, "bench.router.worker", modules[name], *ports))
            assert process.stdout is not None
            ready = json.loads(process.stdout.readline())
            contenders[name] = Contender(process, ready["ready_ms"], tuple(ready["calls"]))
        yield contenders


@contextlib.contextmanager
def start(python: str, module: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([python, "-m", module, *arguments], cwd=ROOT, env=environ, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def report() -> Report:
    """Everything about the router that has a target, and a table of the rest."""
    with contest() as contenders:
        for kind in BATCHES:
            for contender in contenders.values():
                contender.warm_up(kind)
        for _ in range(ROUNDS):
            for kind, count in BATCHES.items():
                for contender in contenders.values():
                    contender.run(kind, count)
            for contender in contenders.values():
                contender.run("short", AT_ONCE * 2, AT_ONCE)
        tables = f"{table(contenders)}\n\n{faults.table(contenders, NAMES)}"
        return Report(figures=tuple(figures(contenders)), table=tables)


def figures(contenders: dict[str, Contender]) -> Iterator[Figure]:
    ours, bare = contenders["lyma"].medians, contenders["sdk"].medians

    def pairs(kind: str) -> list[tuple[float, float]]:
        return list(zip(ours[kind], bare[kind], strict=True))

    def runs(kind: str) -> int:
        return ROUNDS * BATCHES[kind]

    yield figure("a call, against the bare openai SDK", pairs("short"), target=0.3, unit="ms more", runs=runs("short"))
    yield figure("a stream of 200 chunks, against the SDK's typed stream", pairs("long"), target=1.0, runs=runs("long"))
    yield figure(
        "past a 429 to the next provider, against the same by hand",
        pairs("limited"),
        target=1.0,
        unit="ms more",
        runs=runs("limited"),
    )
    yield figure(
        "past a refused connection, against the same by hand",
        pairs("refused"),
        target=1.0,
        unit="ms more",
        runs=runs("refused"),
    )
    if "litellm" in contenders:
        theirs = contenders["litellm"].medians["short"]
        added = [(one - sdk, other - sdk) for one, other, sdk in zip(ours["short"], theirs, bare["short"], strict=True)]
        yield figure("added to a call, against what LiteLLM's Router adds", added, target=0.1, runs=runs("short"))


def table(contenders: dict[str, Contender]) -> str:
    """What else was measured, a column for each contender."""

    def median(name: str, contender: Contender) -> float | None:
        found = contender.medians.get(name)
        return statistics.median(found) if found else None

    rows = {
        "a call, ms": lambda c: median("short", c),
        "a call that is not streamed, ms": lambda c: median("whole", c),
        f"a call, {AT_ONCE} at once, ms each": lambda c: c.cost("short at once", "each_ms"),
        "a stream of 200 chunks, ms": lambda c: median("long", c),
        "past a 429, ms": lambda c: median("limited", c),
        "past a refused connection, ms": lambda c: median("refused", c),
        "processor time a call, ms": lambda c: c.cost("short", "cpu_ms"),
        "processor time a stream of 200 chunks, ms": lambda c: c.cost("long", "cpu_ms"),
        "import and set-up, ms": lambda c: c.ready_ms,
        "resident memory, MiB": lambda c: c.cost("short at once", "rss_mib"),
    }
    names = [NAMES[name] for name in contenders]
    lines = [f"| side by side | {' | '.join(names)} |", "|---|" + "---|" * len(names)]
    for name, read in rows.items():
        values = (read(contender) for contender in contenders.values())
        cells = (f"{value:.2f}" if value is not None else "-" for value in values)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)
