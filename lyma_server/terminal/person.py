"""The person at the keyboard. Only a plain, deliberate answer counts; no terminal, no answer."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
from contextlib import suppress
from typing import TYPE_CHECKING

from lyma_server.agent.ports import ApprovalReply
from lyma_server.terminal.plain import plain, plain_line
from lyma_server.terminal.printer import write_fully

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Event

    from lyma_server.agent.ports import ApprovalRequest, Question
    from lyma_server.factory.approval import Channel

TYPED_OF_HASH = 6


class TerminalPerson:
    """Asks on stderr and reads from stdin, if both are a terminal. `settle` waits for what is being printed."""

    channel: Channel = "terminal"

    def __init__(self, settle: Callable[[], Event], keyboard: int = 0, screen: int = 2) -> None:
        self._settle = settle
        self._keyboard = keyboard
        self._screen = screen
        self._turn = asyncio.Lock()

    async def confirm(self, question: Question) -> bool | None:
        """Ask about one act; `yes` or `no`, all else is asked again."""
        text = f"{plain(question.text).rstrip()}\n\n{plain_line(question.title)}"
        answer = await self._ask(text, "[yes/no] ", {"y": "yes", "yes": "yes", "n": "no", "no": "no"})
        return None if answer is None else answer == "yes"

    async def approve(self, request: ApprovalRequest) -> ApprovalReply | None:
        """Show the agent in full; to approve is to type the end of its hash, which is in the title."""
        digits = request.hash[-TYPED_OF_HASH:]
        above = f"asked for by {plain_line(' > '.join(request.path))}\n" if request.path else ""
        text = f"{plain(request.text).rstrip()}\n\n{above}{plain_line(request.title)}\n{plain(request.summary)}"
        prompt = f'To approve type the last {TYPED_OF_HASH} digits of its hash, to refuse "reject": '
        answers = {digits: "approve", "reject": "reject"}
        answer = await self._ask(text, prompt, answers, "That is neither; nothing is approved yet.\n")
        if answer is None:
            return None
        return ApprovalReply(hash=request.hash, nonce=request.nonce, approved=answer == "approve")

    async def _ask(self, text: str, prompt: str, answers: dict[str, str], again: str = "") -> str | None:
        if not (os.isatty(self._keyboard) and os.isatty(self._screen)):
            return None
        async with self._turn:
            await asyncio.to_thread(self._settle().wait)
            self._show(f"\n{text}\n")
            with suppress(termios.error):  # what was typed before the question is no answer to it
                termios.tcflush(self._keyboard, termios.TCIFLUSH)
            while True:
                self._show(prompt)
                line = await self._line()
                if not line:
                    self._show("\n")
                    return None
                if (answer := answers.get(" ".join(line.split()).lower())) is not None:
                    return answer
                self._show(again)

    async def _line(self) -> str:
        """The next line, empty at its end. Waits without a thread, so that a cancel ends it."""
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._keyboard, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(self._keyboard)
        return os.read(self._keyboard, 4096).decode(errors="replace")

    def _show(self, text: str) -> None:
        sys.stderr.flush()
        write_fully(self._screen, text.encode("utf-8", "backslashreplace"))
