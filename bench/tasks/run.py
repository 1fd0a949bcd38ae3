"""Play the tasks, or those that are named, and print how each went; 1 when one was not solved.

With scripted models on loopback, unless `--live`: then with a provider of yours that has a key, which costs money. Each
task works in a throwaway copy, within a limit of steps, time and money.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.tasks.catalogue import Task, tasks
from bench.tasks.stage import Manner, Outcome, ScriptedModel, perform
from lyma_server.compose import build_core
from lyma_server.errors import LymaError
from lyma_server.protocol.messages import AskBudget
from lyma_server.terminal.scripted import ScriptedProvider

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lyma_server.compose import Core

HEAD = ("task", "passed", "turns", "tool calls", "seconds")
MICROS = 1_000_000
MOST_STEPS, MOST_TOKENS, MOST_MS = 30, 200_000, 300_000
"""Of one task with a real provider: model calls, tokens in and out, and time."""

PRICE = f"each takes 10,000 to 30,000 tokens, or some cents, and is stopped at {MOST_TOKENS:,}; Ctrl-C stops all."


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="TASK", help="all where none is named")
    parser.add_argument("--live", action="store_true", help="ask your own provider; nothing is sent without a key")
    parser.add_argument(
        "--provider", metavar="NAME", help="with --live: which one; the first in your order that has a key"
    )
    options = parser.parse_args()
    try:
        chosen = tasks(*options.names)
    except LookupError as unknown:
        parser.error(str(unknown))
    try:
        return asyncio.run(_live(chosen, options.provider)) if options.live else show(asyncio.run(rehearse(chosen)))
    except LymaError as error:
        print(error.message, file=sys.stderr)
        return 1


async def rehearse(chosen: Sequence[Task]) -> list[Outcome]:
    """Each with its scripted model, after a control: the check must fail on the untouched repository."""
    model = ScriptedModel()
    with (
        tempfile.TemporaryDirectory(prefix="lyma-tasks-") as top,
        ScriptedProvider(model.answer, Path(top, "provider.sock")) as provider,
    ):
        core = build_core(surroundings(os.environ, Path(top), provider.base_url))
        try:
            return [await _rehearsed(core, model, task, Path(top, task.name)) for task in chosen]
        finally:
            await core.close()


async def _rehearsed(core: Core, model: ScriptedModel, task: Task, place: Path) -> Outcome:
    model.play(task)
    outcome = await perform(core, task, place, Manner())
    lacks = [lack for lack in (outcome.missing, *model.surprises) if lack]
    return Outcome(task.name, "; ".join(lacks), outcome.turns, outcome.tool_calls, outcome.seconds)


def surroundings(environ: Mapping[str, str], top: Path, base_url: str) -> dict[str, str]:
    """A home of its own, the scripted provider, and no setting or key of the user's."""
    return {
        **{name: environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in environ},
        "HOME": str(top / "home"),
        "LYMA_HOME": str(top / "home/.lyma"),
        "LYMA_ORDER": "scripted",
        "LYMA_PROVIDERS__SCRIPTED__BASE_URL": base_url,
        "LYMA_PROVIDERS__SCRIPTED__MODEL": "scripted",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


async def _live(chosen: Sequence[Task], wanted: str | None) -> int:
    core = build_core(os.environ, {"agent.confirm": "never"})
    try:
        order = core.loaded.settings.order
        with_key = [name for name in order if any(key.secret is not None for key in core.keys[name])]
        names = [name for name in with_key if wanted in {None, name}]
        if not names:
            print("No such provider with a key is configured, so nothing was asked; `lyma setup` stores one.")
            return 0 if wanted is None else 1
        print(f"{len(chosen)} tasks for {names[0]}: {PRICE}", flush=True)
        return show(await _asked(core, chosen, names[0]))
    finally:
        await core.close()


async def _asked(core: Core, chosen: Sequence[Task], provider: str) -> list[Outcome]:
    budget = AskBudget(max_steps=MOST_STEPS, max_tokens=MOST_TOKENS, timeout_ms=MOST_MS)
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="lyma-tasks-") as top:
        for task in chosen:
            try:
                outcome = await perform(core, task, Path(top, task.name), Manner(provider, budget, control=False))
            except LymaError as error:
                outcome = Outcome(task.name, core.redactor.redact(error.message), 0, 0, 0, None)
            print(f"{task.name}: {'solved' if outcome.passed else core.redactor.redact(outcome.missing)}", flush=True)
            outcomes.append(outcome)
    return outcomes


def show(outcomes: Sequence[Outcome]) -> int:
    """The table, what is missing, and 1 where anything is."""
    rows = [HEAD, *(_row(outcome) for outcome in outcomes)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    for outcome in outcomes:
        if outcome.missing:
            print(f"\n{outcome.task}: {outcome.missing}")
    passed = sum(outcome.passed for outcome in outcomes)
    print(f"\n{passed} of {len(outcomes)} solved{_cost(outcomes)}")
    return 0 if passed == len(outcomes) else 1


def _row(outcome: Outcome) -> tuple[str, ...]:
    passed = "yes" if outcome.passed else "NO"
    return outcome.task, passed, str(outcome.turns), str(outcome.tool_calls), f"{outcome.seconds:.2f}"


def _cost(outcomes: Sequence[Outcome]) -> str:
    known = [outcome.cost_micros for outcome in outcomes if outcome.cost_micros is not None]
    unknown = len(outcomes) - len(known)
    money = f", for ${sum(known) / MICROS:.4f}" if sum(known) else ""
    return money + (f" ({unknown} at an unknown price)" if unknown else "")


if __name__ == "__main__":
    sys.exit(main())
