"""One turn in the terminal, from its start to its last word."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from attrs import frozen

from lyma_server.protocol.convert import unstructure
from lyma_server.terminal.notes import STOPPED, summary
from lyma_server.terminal.person import TerminalPerson
from lyma_server.terminal.plain import styled
from lyma_server.terminal.printer import Printer
from lyma_server.terminal.view import JsonView, LiveView, WholeView, json_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from lyma_server.agent.ports import Workspace
    from lyma_server.agent.turn import Turn
    from lyma_server.compose import Core
    from lyma_server.protocol.messages import AskParams, AskResult
    from lyma_server.terminal.stop import TurnStop
    from lyma_server.terminal.view import View

PATIENCE_S = 3.0
"""How long a person looks at nothing before the seconds are counted."""


@frozen
class Played:
    """`broken`: nobody reads the answer any more, for the `problem` where it is not just that the reader left."""

    result: AskResult
    broken: bool
    problem: str


async def play(  # noqa: PLR0913 - the last one by name
    core: Core,
    params: AskParams,
    workspace: Workspace,
    stop: TurnStop,
    view: View,
    *,
    begun: Callable[[Turn], None] = lambda _turn: None,
) -> Played:
    """Ask, print what is said as it is said, and conclude. `begun` gets the turn once there is one.

    Raises what ends a turn early, after all is printed.
    """
    is_styled = styled(sys.stderr)
    patience_s = PATIENCE_S if is_styled and isinstance(view, LiveView) else None
    printer = Printer(view, dim_notes=is_styled, lost=stop.from_thread, patience_s=patience_s)
    try:
        turn = core.start(params, workspace, TerminalPerson(printer.flushed), printer.feed)
        begun(turn)
        stop.when_asked(turn.cancel)
        result = await turn.result()
        _conclude(view, printer, result)
    finally:
        await asyncio.to_thread(printer.close)
    return Played(result, printer.broken, printer.problem)


def view_of(*, as_json: bool = False) -> View:
    """How to write, by what stdout is."""
    if as_json:
        return JsonView()
    return LiveView() if sys.stdout.isatty() else WholeView()


def _conclude(view: View, printer: Printer, result: AskResult) -> None:
    """The last words: the result as JSON, or why it stopped and what it took."""
    if isinstance(view, JsonView):
        printer.write(json_line({"type": "result", **unstructure(result)}))
        return
    if result.stop_reason in STOPPED:
        printer.remark(STOPPED[result.stop_reason])
    if sys.stderr.isatty():
        printer.remark(summary(result))
