"""The state file between processes: nothing corrupt, nothing lost, whoever is killed."""

import fcntl
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path

import pytest

from lyma_server.router.database import Database
from lyma_server.router.ledger import Ledger
from lyma_server.router.standing import Deployment, RingKey, standing_of
from lyma_server.router.state import State
from tests.processes import wait_for

ROOT = Path(__file__).resolve().parents[2]
WRITER = ROOT / "tests" / "state_writer.py"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def start_writer(path: Path, who: str, seconds: float) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, str(WRITER), str(path), who, str(seconds)], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
    )


def integrity(path: Path) -> str:
    connection = sqlite3.connect(path)
    try:
        return connection.execute("PRAGMA integrity_check").fetchone()[0]
    finally:
        connection.close()


def hammer(path: Path, writers: int, seconds: float) -> None:
    running = [start_writer(path, f"w{n}", seconds) for n in range(writers)]
    reports = [json.loads(writer.communicate(timeout=seconds + 60)[0]) for writer in running]
    assert [report["notices"] for report in reports] == [[]] * writers
    assert integrity(path) == "ok"
    assert not list(path.parent.glob("*.damaged-*"))

    expected: dict[str, float] = defaultdict(float)
    for report in reports:
        for subject, until in report["longest"].items():
            expected[subject] = max(expected[subject], until)
    database = Database(path)
    try:
        marks = State(database).snapshot().marks
        ahead = time.time() - time.monotonic()
        lost = {s: u for s, u in expected.items() if marks[("anthropic", s, "sonnet")].until + ahead < u - 0.5}
        assert lost == {}
        assert len(marks) == len(expected)
        assert Ledger(database).today()["anthropic"].attempts == sum(report["attempts"] for report in reports)
    finally:
        database.close()


def test_processes_that_write_at_once_lose_nothing(tmp_path):
    hammer(tmp_path / "state.db", writers=3, seconds=0.5)


@pytest.mark.full
def test_eight_processes_for_half_a_minute_lose_nothing(tmp_path):
    hammer(tmp_path / "state.db", writers=8, seconds=30)


def test_what_was_written_survives_kill_9(tmp_path):
    path = tmp_path / "state.db"
    writer = start_writer(path, "doomed", 2000)
    database = Database(path)
    state = State(database)
    try:
        deadline = time.monotonic() + 20
        while len(state.snapshot().marks) < 5 and time.monotonic() < deadline:
            time.sleep(0.02)
        writer.send_signal(signal.SIGKILL)
        writer.wait(10)
        seen = dict(state.snapshot().marks)
        assert len(seen) >= 5
    finally:
        writer.kill()
        writer.communicate()
        database.close()
    assert integrity(path) == "ok"
    later = Database(path)
    assert set(State(later).snapshot().marks) == set(seen)
    later.close()


def test_a_key_cooled_by_one_process_is_skipped_by_another(tmp_path):
    path = tmp_path / "state.db"
    script = (
        "import sys; from pathlib import Path; from lyma_server.router.database import Database;"
        "from lyma_server.router.state import State; from lyma_server.router.standing import Mark;"
        "d = Database(Path(sys.argv[1])); State(d).hold(Mark('openai', 'account:work', 'gpt', 60, 'rate_limit')); d.close()"
    )
    database = Database(path)
    state = State(database)
    ours = Deployment("openai", "gpt", (RingKey("aaa", "work"), RingKey("bbb", "work"), RingKey("ccc")))
    try:
        assert state.snapshot().marks == {}
        subprocess.run([sys.executable, "-c", script, str(path)], env=ENVIRONMENT, check=True, timeout=30)
        standings = [standing_of(key, ours, state.snapshot(), time.monotonic()).freedom for key in ours.keys]
        assert standings == ["out", "out", "free"]
    finally:
        database.close()


HOLD_ONE = """
import sys
import threading
from pathlib import Path
from lyma_server.router.database import Database
from lyma_server.router.standing import Mark
from lyma_server.router.state import State
from tests.processes import wait_for
database = Database(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
state = State(database)
state.snapshot()
state.hold(Mark("openai", sys.argv[2], "gpt", 60, "rate_limit"))
database.close()
"""


def test_processes_that_meet_a_damaged_file_at_once_set_it_aside_once(tmp_path):
    path = tmp_path / "state.db"
    path.write_bytes(b"not a database" * 500)
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", HOLD_ONE, str(path), f"key:{n}"],
            env=ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(4)
    ]
    for writer in writers:
        writer.stdout.readline()
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate(timeout=30)
    database = Database(path)
    marks = State(database).snapshot().marks
    database.close()
    assert {subject for _, subject, _ in marks} == {f"key:{n}" for n in range(4)}
    aside = [found.name for found in tmp_path.glob("*.damaged-*") if not found.name.endswith(("-wal", "-shm"))]
    assert len(aside) == 1


FULL_DISK = """
import resource, sys
from pathlib import Path
from lyma_server.router.database import Database
from lyma_server.router.standing import Mark
from lyma_server.router.state import State
from tests.processes import wait_for
database = Database(Path(sys.argv[1]))
state = State(database)
state.hold(Mark("openai", "key:first", "gpt", 60, "rate_limit"))
assert database.flush()
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
for n in range(50):
    state.hold(Mark("openai", f"key:{n}", "gpt" * 500, 60, "rate_limit"))
    assert database.flush()
    state.snapshot()
assert len(state.snapshot().marks) == 51, len(state.snapshot().marks)
print(len(database.take_notices()))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
state.hold(Mark("openai", "key:last", "gpt", 60, "rate_limit"))
assert database.flush()
assert len(state.snapshot().marks) == 52
print(len(database.take_notices()))
database.close()
"""


def test_a_full_disk_leaves_one_notice_and_memory_carries_on(tmp_path):
    path = tmp_path / "state.db"
    ran = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(path)],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.stderr, ran.stdout.split()) == ("", ["1", "0"])
    assert integrity(path) == "ok"
    later = Database(path)
    assert {"key:first", "key:last"} <= {subject for _, subject, _ in State(later).snapshot().marks}
    later.close()


def test_a_reader_does_not_wait_for_a_process_that_takes_long_to_open_the_file(tmp_path):
    """It may be stopped, or its disk be slow; whoever reads is an event loop."""
    path = tmp_path / "state.db"
    database = Database(path)
    with os.fdopen(os.open(f"{path}.lock", os.O_CREAT | os.O_RDWR, 0o600)) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        release = threading.Timer(5, lambda: fcntl.flock(lock, fcntl.LOCK_UN))
        release.start()
        start = time.monotonic()
        assert database.version() is None
        assert time.monotonic() - start < 2
        release.cancel()
        release.join()
    assert database.take_notices() == []
    wait_for(lambda: database.version() is not None)
    database.close()
