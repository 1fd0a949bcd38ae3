"""Pictures of Neovim with Lyma, made from a real screen: `python -m tests.editors.pictures` writes docs/pictures/.

The editor, the client, the server and the sandbox are the real ones; only the model is scripted.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import tempfile
import termios
import time
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from xml.sax.saxutils import escape

import pyte

from tests.agents import EXAMPLES
from tests.editors.neovim import install, program, surroundings
from tests.editors.real_server import last_words, settings
from tests.raw_client import ROOT
from tests.stub_provider import Reply, Request, StubProvider, call_tool, fail, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

COLUMNS, LINES = 120, 36
CELL_W, CELL_H = 8.43, 18
BACKGROUND, TEXT = "14161b", "e0e2ea"
NAMED = {"default": TEXT, "brown": "fce094", "red": "ffc0b9", "green": "b3f6c0", "blue": "a6dbff", "cyan": "8cf8f7"}
CODE = '''"""Jobs that wait for a worker."""

import heapq


class Queue:
    def __init__(self):
        self._jobs = []

    def put(self, priority, job):
        heapq.heappush(self._jobs, (priority, job))

    def take(self):
        return heapq.heappop(self._jobs)[-1]
'''


class Screen:
    """A terminal that remembers what it shows."""

    def __init__(self, words: list[str], env: Mapping[str, str], cwd: Path) -> None:
        self.screen = pyte.Screen(COLUMNS, LINES)
        self._stream = pyte.ByteStream(self.screen)
        self._own, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        self._process = subprocess.Popen(
            words, stdin=theirs, stdout=theirs, stderr=theirs, env=env, cwd=cwd, start_new_session=True
        )
        os.close(theirs)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._own)

    def press(self, keys: str) -> None:
        os.write(self._own, keys.encode())

    def wait_for(self, text: str, within_s: float = 30) -> None:
        """Wait until the screen shows `text` and rests."""
        deadline = time.monotonic() + within_s
        while self._read(0.3) or text not in "\n".join(self.screen.display):
            assert time.monotonic() < deadline, "\n".join(self.screen.display)

    def _read(self, patience_s: float) -> bool:
        ready, _, _ = select.select([self._own], [], [], patience_s)
        if ready:
            self._stream.feed(os.read(self._own, 65536))
        return bool(ready)


def colour(name: str) -> str:
    return NAMED.get(name, name if len(name) == 6 else TEXT)


def style(cell: Any) -> tuple[str, str, bool, bool]:
    """Foreground, background, bold, italic."""
    front, back = colour(cell.fg), BACKGROUND if cell.bg == "default" else colour(cell.bg)
    return (back, front, cell.bold, cell.italics) if cell.reverse else (front, back, cell.bold, cell.italics)


def svg(screen: pyte.Screen, title: str) -> str:
    """The screen as a picture that any browser shows alike, whatever its fonts."""
    width, height = COLUMNS * CELL_W + 24, LINES * CELL_H + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="100%" height="100%" rx="8" fill="#{BACKGROUND}"/>',
        '<g font-family="DejaVu Sans Mono,Menlo,Consolas,monospace" font-size="14">',
    ]
    for row in range(LINES):
        cells = [(column, screen.buffer[row][column]) for column in range(COLUMNS)]
        for (front, back, bold, italic), run in groupby(cells, key=lambda each: style(each[1])):
            found = [(column, cell.data) for column, cell in run]
            if back != BACKGROUND:
                parts.append(f'<rect {place(found)} y="{12 + row * CELL_H}" height="{CELL_H}" fill="#{back}"/>')
            looks = f'fill="#{front}"' + ' font-weight="bold"' * bold + ' font-style="italic"' * italic
            for words in phrases(found):
                text = escape("".join(data for _, data in words))
                parts.append(f'<text {place(words, "textLength")} y="{25 + row * CELL_H}" {looks}>{text}</text>')
    return "\n".join([*parts, "</g>", "</svg>", ""])


def place(found: list[tuple[int, str]], width: str = "width") -> str:
    """Where neighbouring cells are, as attributes."""
    return f'x="{12 + found[0][0] * CELL_W:.1f}" {width}="{len(found) * CELL_W:.1f}"'


def phrases(found: list[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    """The words, each in its place but for single spaces: a browser makes one of several and leaves out those at an end."""
    words: list[tuple[int, str]] = []
    for column, data in [*found, (0, " "), (0, " ")]:
        if data == " " and words and words[-1][1] == " ":
            yield words[:-1]
            words = []
        elif data != " " or words:
            words.append((column, data))


def picture(title: str, answer: Callable[[Request], Reply], act: Callable[[Screen, Path], None]) -> str:
    """Start Neovim in a small project, do something, and draw what is seen."""
    with tempfile.TemporaryDirectory() as made, StubProvider(answer) as stub:
        folder = Path(made)
        root = folder / "work"
        (root / ".lyma").mkdir(parents=True)
        (root / "jobs.py").write_text(CODE)
        (root / ".lyma" / "agents").symlink_to(EXAMPLES)
        keys = {"LYMA_PROVIDERS__LOCAL__KEYS": "sk-local-0000000000ab21,sk-local-000000000077f0", "HOME": made}
        install(folder)
        env = surroundings(folder, {**settings(stub, folder / "home"), **keys, "COLORTERM": "truecolor"})
        look = ["-c", "set number noshowcmd noruler termguicolors title", "-c", "let g:loaded_matchparen = 1"]
        with Screen([program(), "-n", *look, "jobs.py"], env, root) as screen:
            screen.wait_for("heappop")
            act(screen, root)
            return svg(screen.screen, title)


def mend(request: Request) -> Reply:
    """One key is refused; with the next, the model looks, edits and says why."""
    if request.key.endswith("ab21"):
        return fail(429, {"error": {"message": "Rate limit reached", "type": "requests"}}, {"retry-after": "20"})
    done = sum(message["role"] == "tool" for message in request.body["messages"])
    if done == 0:
        return call_tool("search", {"pattern": "heappush", "path": "."})
    if done == 1:
        old = "heapq.heappush(self._jobs, (priority, job))"
        new = "heapq.heappush(self._jobs, (priority, id(job), job))"
        edits = [{"old_text": old, "new_text": new}]
        return call_tool("edit_file", {"path": "jobs.py", "edits": edits})
    return say(
        "Two jobs of the **same priority** were compared with each other, and jobs cannot be.",
        " Their `id` now breaks the tie. Which of two equal jobs goes first is left open, as it was.",
        input_tokens=2210,
        output_tokens=164,
    )


def ask(screen: Screen, _root: Path) -> None:
    screen.press("10GVj:LymaAsk why does put() raise a TypeError now and then? mend it\r")
    screen.wait_for("done ·")


def run_agent(request: Request) -> Reply:
    return say("nothing") if "todo" not in last_words(request) else call_tool("list_files", {})


def approve(screen: Screen, _root: Path) -> None:
    screen.press(":LymaCompile todo-triage\r")
    screen.wait_for("(waiting)")
    screen.press("\r:LymaApprove todo-triage\r")
    screen.wait_for("3: Approve")


PICTURES: dict[str, Callable[[], str]] = {
    "neovim-ask": lambda: picture("Neovim: :LymaAsk on a selection, with its answer and the edit", mend, ask),
    "neovim-approval": lambda: picture("Neovim: an agent is shown in full before it may run", run_agent, approve),
}


def main() -> None:
    folder = ROOT / "docs" / "pictures"
    folder.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        (folder / f"{name}.svg").write_text(draw())


if __name__ == "__main__":
    main()
