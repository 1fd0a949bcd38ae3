"""The tools that run commands. What may not run is decided in the executor; here is what the model and the person are told."""

from __future__ import annotations

import asyncio
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from lyma_server.agent.aftermath import told_after
from lyma_server.agent.ports import Question
from lyma_server.agent.tools.base import Tool, arguments, count, text
from lyma_server.errors import CommandTimeout, MaskUnavailable, ToolError
from lyma_server.protocol.events import ItemCompleted, ItemDelta, ItemStarted, Notice
from lyma_server.protocol.items import CommandOutputItem

if TYPE_CHECKING:
    from lyma_server.agent.tools.base import Toolbox
    from lyma_server.executor.run import Command, Commands
    from lyma_server.protocol.base import Json

FIRST_WORDS_S = 1.0
"""How long to listen to a background command before the model is told that it runs."""

SHOWN_LIVE = 1 << 20
"""Characters of a command's output that are streamed; the rest is in the complete item as far as it is kept."""

LISTED_END = 300
SHOWN_END = 8000
"""Characters of output that a list shows of each command, and of the one that is asked for."""

READ_ONLY = "Read-only file system"
WRITE_HINT = (
    "Commands may write in the workspace, in /tmp and in caches only; where more is needed, the person can allow it with the "
    "settings executor.writable or executor.write."
)


async def run_command(given: dict[str, Json], box: Toolbox) -> str:
    commands = await _commands(box)
    command, folder = given["command"], _folder(given)
    await commands.check(command, folder)
    await _ask(command, folder, box)
    shown = _Shown(box, command)
    background = bool(given.get("background"))
    run: Command | None = None
    async with told_after("The command", box):
        try:
            run = await commands.start(command, folder=folder, on_text=shown.grow, background=background)
            await (_listen(run) if background else commands.finish(run, given.get("timeout_s")))
        except MaskUnavailable as missing:
            box.emit(Notice(text=missing.message, level="warning"))
            raise
        finally:
            shown.complete(run)
            _tell_notices(commands, box)
    if run.timed_out:
        raise CommandTimeout(f"The command ran too long and was ended with all that it started.\n{_said(run)}")
    return _report(run)


async def list_commands(given: dict[str, Json], box: Toolbox) -> str:
    commands = await _commands(box)
    number = given.get("command")
    found = [each for each in commands.listed() if number in (None, each.number)]
    if not found:
        return (
            "No command runs in the background."
            if number is None
            else f"There is no command {number} in the background."
        )
    return "\n\n".join(_line(each, LISTED_END if number is None else SHOWN_END) for each in found)


async def stop_command(given: dict[str, Json], box: Toolbox) -> str:
    commands = await _commands(box)
    stopped = await commands.stop(given["command"])
    if stopped.leaves_processes:
        raise ToolError(f"Command {stopped.number} could not be ended; try again.")
    return f"Command {stopped.number} has ended with all that it started."


async def _commands(box: Toolbox) -> Commands:
    if box.commands is None:
        raise ToolError("There is no workspace, so no command runs.")
    await asyncio.to_thread(
        import_module, "lyma_server.executor.run"
    )  # it takes a moment that the event loop is not kept
    return box.commands()


def _folder(given: dict[str, Json]) -> Path | None:
    return Path(given["folder"]) if given.get("folder") else None


async def _ask(command: str, folder: Path | None, box: Toolbox) -> None:
    if box.settings.confirm not in {"commands", "all"}:
        return
    where = f"\n\n(in {folder})" if folder else ""
    question = Question("command", "Run this command?", box.redactor.redact(command) + where)
    answer = await box.person.confirm(question)
    if answer is None:
        raise ToolError(
            "Nobody answered whether this command may run, so it was not run; the setting agent.confirm wants a person's yes."
        )
    if answer is not True:
        raise ToolError("The person did not agree to this command, so it was not run; ask what they want instead.")


async def _listen(run: Command) -> None:
    try:
        async with asyncio.timeout(FIRST_WORDS_S):
            await asyncio.shield(run.process.gone)
            await run.drained.wait()
    except TimeoutError:
        return


class _Shown:
    """The item by which a person sees the command and its output grow."""

    def __init__(self, box: Toolbox, command: str) -> None:
        self._box, self._command, self._item = box, command, box.new_item()
        self._left = SHOWN_LIVE
        self._done = False
        box.emit(ItemStarted(item=CommandOutputItem(id=self._item, call=box.call, command=command)))

    def grow(self, text: str) -> None:
        """Show more. A background command goes on after its item is complete; that is not shown."""
        if self._done or self._left <= 0:
            return
        self._left -= len(text)
        self._box.emit(ItemDelta(item=self._item, text=text[:SHOWN_LIVE]))

    def complete(self, run: Command | None) -> None:
        self._done = True
        said, status = ("", None) if run is None else (run.output.text(), run.status)
        item = CommandOutputItem(
            id=self._item, call=self._box.call, command=self._command, text=said, exit_status=status
        )
        self._box.emit(ItemCompleted(item=item))


def _tell_notices(commands: Commands, box: Toolbox) -> None:
    while commands.notices:
        box.emit(Notice(text=commands.notices.pop(0), level="warning"))


def _report(run: Command) -> str:
    if run.status is None:
        return f"Command {run.number} runs in the background until it is stopped or the session ends.\n{_said(run)}"
    parts = [f"exit status {run.status}", _said(run)]
    parts += dict.fromkeys(
        f"Refused as it was to be executed ({each.rule}): {each.reason} {each.instead}" for each in run.refusals
    )
    if run.status != 0 and READ_ONLY in run.output.text():
        parts.append(WRITE_HINT)
    if run.leaves_processes:
        parts.append(f"It left something running, which is listed as command {run.number} and can be stopped.")
    return "\n".join(part for part in parts if part)


def _said(run: Command) -> str:
    return run.output.text() or "(no output)"


def _line(run: Command, shown: int) -> str:
    age = f"{time.time() - run.started:.0f} s ago"
    if run.status is None:
        state = "runs"
    elif run.leaves_processes:
        state = f"ended with status {run.status}, but something that it started runs"
    else:
        state = f"ended with status {run.status}"
    return f"command {run.number}: {run.text}\n{state}; started {age}\n{run.output.end(shown)}".rstrip()


RUN_COMMAND = Tool(
    "run_command",
    "Run a command with bash in the workspace and return its exit status and output. Each starts in a fresh shell without a "
    "terminal or input. A command with background=true goes on until it is stopped or the session ends, not only until this "
    "turn ends; use that for servers. /tmp is private to the session. A few destructive commands are forbidden: the refusal "
    "says which part and what to do instead.",
    arguments(
        {"command": text("The command, as for bash -c.")},
        {
            "background": {"type": "boolean", "description": "Return at once and let it run on."},
            "timeout_s": count("Seconds after which it is ended; 600 unless the settings say otherwise."),
            "folder": text("Where to run it, relative to the workspace or absolute; the workspace by default."),
        },
    ),
    run_command,
)
LIST_COMMANDS = Tool(
    "list_commands",
    "List the commands of this session that run in the background, with the end of their output.",
    arguments({}, {"command": count("Only this one, with more of its output.")}),
    list_commands,
)
STOP_COMMAND = Tool(
    "stop_command",
    "End a background command with all that it started.",
    arguments({"command": count("Its number.")}),
    stop_command,
)
