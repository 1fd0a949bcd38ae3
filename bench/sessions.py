"""The editor's session: what we add before the first word, many asks at once, memory over many asks, long logs."""

from __future__ import annotations

import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.editor import Editor
from bench.measure import Figure, Report, bound, figure

if TYPE_CHECKING:
    from collections.abc import Iterator

ROUNDS = 100
AT_ONCE = 64
FEW, MANY = 100, 1000
LOGGED_ITEMS = 10_000
LOADS = 5
CHAT = {"model": "bench", "stream": True, "messages": [{"role": "user", "content": "hello"}]}


def report() -> Report:
    """Each figure of the session."""
    with provider() as port, tempfile.TemporaryDirectory() as folder:
        figures = [first_word(port, Path(folder)), *at_once(port, Path(folder)), memory(port, Path(folder))]
        return Report(figures=(*figures, load(Path(folder))))


@contextmanager
def provider() -> Iterator[int]:
    """The stub provider's port."""
    root = Path(__file__).resolve().parents[1]
    command = [sys.executable, "-m", "bench.router.stub"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root) as stub:
        assert stub.stdout is not None
        try:
            yield int(stub.stdout.readline())
        finally:
            stub.kill()


def started(port: int, folder: Path, name: str) -> Editor:
    """A server with a home and a workspace of its own."""
    home, work = folder / f"home-{name}", folder / f"work-{name}"
    work.mkdir()
    return Editor(settings(port, home), work)


def settings(port: int, home: Path) -> dict[str, str]:
    """The variables that name the stub provider and nobody else."""
    return {
        "LYMA_HOME": str(home),
        "LYMA_ORDER": "local",
        "LYMA_PROVIDERS__LOCAL__BASE_URL": f"http://127.0.0.1:{port}/short/v1",
        "LYMA_PROVIDERS__LOCAL__MODEL": "bench",
    }


def first_word(port: int, folder: Path) -> Figure:
    """From the ask to its first delta, against the first chunk of the same answer over a bare connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    with started(port, folder, "first") as editor:
        for _ in range(5):
            editor.call("lyma/ask", {"prompt": "hello"})
            _first_chunk(connection)
        pairs = [(_first_delta(editor), _first_chunk(connection)) for _ in range(ROUNDS)]
    connection.close()
    return figure(
        "ask to first delta, against the first chunk over a bare connection", pairs, target=5.0, unit="ms more"
    )


def _first_delta(editor: Editor) -> float:
    start = time.perf_counter()
    identity = editor.request("lyma/ask", {"prompt": "hello"})
    editor.wait_for(lambda message: message.get("params", {}).get("type") == "item.delta")
    took = (time.perf_counter() - start) * 1000
    editor.wait_for(lambda message: message.get("id") == identity)
    return took


def _first_chunk(connection: http.client.HTTPConnection) -> float:
    start = time.perf_counter()
    connection.request("POST", "/short/v1/chat/completions", json.dumps(CHAT), {"content-type": "application/json"})
    answer = connection.getresponse()
    answer.read(1)
    took = (time.perf_counter() - start) * 1000
    answer.read()
    return took


def at_once(port: int, folder: Path) -> tuple[Figure, Figure]:
    """The most memory of a server that answers 64 asks of 64 sessions at once, and how unequally long they take."""
    with started(port, folder, "once") as editor:
        editor.call("lyma/ask", {"prompt": "hello"})
        ends: dict[int, float] = {}

        def note(message: dict[str, Any]) -> None:
            if "error" in message:
                raise RuntimeError(f"an ask failed: {message['error']}")
            if "result" in message:
                ends[message["id"]] = time.perf_counter()

        editor.seen = note
        start = time.perf_counter()
        waiting = {editor.request("lyma/ask", {"prompt": f"hello {number}"}) for number in range(AT_ONCE)}
        editor.wait_for(lambda _message: waiting <= ends.keys())
        took = sorted(ends[identity] - start for identity in waiting)
        most = editor.memory_mib("VmHWM")
    name = f"{AT_ONCE} asks at once in {AT_ONCE} sessions"
    spread = figure(
        f"{name}: the last, against the median", [(took[-1] * 1000, statistics.median(took) * 1000)], target=3.0
    )
    return bound(f"{name}: the most memory", most, target=150.0, unit="MiB"), spread


def memory(port: int, folder: Path) -> Figure:
    """The memory after 1,000 asks against that after 100."""
    with started(port, folder, "many") as editor:
        for _ in range(FEW):
            editor.call("lyma/ask", {"prompt": "hello"})
        few = editor.memory_mib()
        for _ in range(MANY - FEW):
            editor.call("lyma/ask", {"prompt": "hello"})
        many = editor.memory_mib()
    return bound(f"memory after {MANY} asks, against that after {FEW}", many / few, target=1.05, unit="times")


def load(folder: Path) -> Figure:
    """Reading a session of 10,000 items: its conversation and its events."""
    from lyma_server.agent.session import SessionStore
    from lyma_server.protocol.events import ItemCompleted, ItemStarted, TurnCompleted, TurnStarted
    from lyma_server.protocol.items import TextItem
    from lyma_server.router.chat import Message, Text

    store = SessionStore(folder / "sessions")
    log = store.begin("t", None, root=None, title="long")
    log.keep_event("t", TurnStarted(prompt="p"))
    for number in range(LOGGED_ITEMS):
        item = TextItem(id=f"i{number}", text=f"{number} " * 50)
        log.keep_event("t", ItemStarted(item=TextItem(id=item.id)))
        log.keep_event("t", ItemCompleted(item=item))
        log.keep_message(Message("assistant", (Text(item.text),)))
    log.keep_event("t", TurnCompleted(stop_reason="end_turn"))
    times = []
    for _ in range(LOADS):
        start = time.process_time()
        assert len(log.messages()) == LOGGED_ITEMS
        assert sum(1 for _ in store.replay_json(log.session)) == 2 * LOGGED_ITEMS + 2
        times.append((time.process_time() - start) * 1000)
    store.end(log)
    return bound(
        f"opening and replaying a session of {LOGGED_ITEMS} items, processor time",
        statistics.median(times),
        target=500.0,
        unit="ms",
    )
