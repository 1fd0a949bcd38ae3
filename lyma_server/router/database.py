"""One SQLite file that several processes share: reads on the caller's thread, writes on a thread of its own.

The caller is an event loop: it must never wait for another process's lock or for a slow disk. So a write is queued and
committed a moment later, and a read takes what is committed without waiting. A damaged file is set aside; where nothing
can be written, everything goes on without it. Both leave one notice.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import fcntl
import math
import os
import queue
import stat
import threading
import time
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
    from pathlib import Path

Parameters: TypeAlias = tuple[Any, ...]
_Write: TypeAlias = tuple[int, str, Parameters]
_Opened: TypeAlias = "tuple[sqlite3.Connection, int | None]"
"""A connection and the number of the file that it is open on."""

SCHEMA_VERSION = 1
SCHEMA = """
CREATE TABLE IF NOT EXISTS marks (
    provider TEXT, subject TEXT, model TEXT, until REAL, at REAL, reason TEXT, stamp TEXT, strikes INTEGER,
    PRIMARY KEY (provider, subject, model)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS breakers (
    provider TEXT, model TEXT, until REAL, at REAL, seconds REAL, reason TEXT,
    PRIMARY KEY (provider, model)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS learned (
    provider TEXT, fingerprint TEXT, account TEXT, at REAL, PRIMARY KEY (provider, fingerprint)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS attempts (
    at REAL, session TEXT, provider TEXT, key TEXT, model TEXT, class TEXT, ms INTEGER, input_tokens INTEGER,
    output_tokens INTEGER, cached_tokens INTEGER, cost_micros INTEGER, estimated INTEGER, writer TEXT, number INTEGER);
CREATE INDEX IF NOT EXISTS attempts_at ON attempts (at);
"""

_DAMAGED = {11, 26}
"""SQLITE_CORRUPT and SQLITE_NOTADB."""
_BUSY = {5, 6}
"""SQLITE_BUSY and SQLITE_LOCKED."""
_WRITER_WAITS_S = 5.0
_WRITER_TRIES = 12
_READER_RESTS_S = 1.0
_READER_WAITS_S = 0.05
"""For another process that opens the file just now; it takes a few milliseconds."""


class Database:
    """`path` null: nothing is kept. Nothing is opened before the first read or write."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._reader: _Opened | None = None
        self._reader_rests_until = 0.0
        self._queue: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._committed = threading.Condition()
        self._queued = 0
        self._settled = 0
        self._saved = 0
        self._lost: set[int] = set()
        self._notices: list[str] = []
        self._noticed: set[str] = set()
        self._notices_lock = threading.Lock()
        self._closed = False

    def is_saved(self, number: int) -> bool:
        """Whether the write of that number is on disk."""
        return number <= self._saved and number not in self._lost

    def take_notices(self) -> list[str]:
        """Sentences for the person since the last call, each at most once in the life of this object."""
        with self._notices_lock:
            notices, self._notices = self._notices, []
        return notices

    def version(self) -> int | None:
        """Changes when any process or thread has committed; None where nothing can be read. Costs microseconds."""
        with self._lock:
            rows = self._read("PRAGMA data_version", ())
            return None if not rows or self._reader is None else hash((rows[0][0], self._reader[1]))

    def read(self, sql: str, parameters: Parameters = ()) -> list[Parameters] | None:
        """The rows, or None where nothing can be read now."""
        with self._lock:
            return self._read(sql, parameters)

    def write(self, sql: str, parameters: Parameters = ()) -> int:
        """Queue a statement and return its number; `saved` reaches it once it is on disk."""
        with self._lock:
            self._queued += 1
            number = self._queued
            if self._path is None or self._closed:
                self._settled = number
                return number
            self._queue.put((number, sql, parameters))
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._write_until_closed, args=(self._path,), name="lyma-state", daemon=True
                )
                self._thread.start()
                atexit.register(self.close)
        return number

    def flush(self, timeout_s: float = 10.0) -> bool:
        """Wait until all that was queued so far is on disk or lost; False after `timeout_s`."""
        target = self._queued
        with self._committed:
            return self._committed.wait_for(lambda: self._settled >= target, timeout_s)

    def close(self, timeout_s: float = 10.0) -> None:
        """Write what is queued and let go of the file."""
        with self._lock:
            self._closed = True
            thread = self._thread
        if thread is not None:
            atexit.unregister(self.close)
            self._queue.put(None)
            thread.join(timeout_s)
        with self._lock:
            _close(self._reader)
            self._reader = None

    # Reading

    def _read(self, sql: str, parameters: Parameters) -> list[Parameters] | None:
        if self._path is None or self._closed or time.monotonic() < self._reader_rests_until:
            return None
        import sqlite3

        try:
            self._reader = _reopen(self._path, self._reader, wait_s=0.0)
            return self._reader[0].execute(sql, parameters).fetchall()
        except (sqlite3.Error, OSError) as error:
            _close(self._reader)
            self._reader = None
            if isinstance(error, BlockingIOError) or not self._meet(self._path, error, _READER_WAITS_S):
                self._reader_rests_until = time.monotonic() + _READER_RESTS_S
        return None

    # Writing, on the thread

    def _write_until_closed(self, path: Path) -> None:
        connection: _Opened | None = None
        open_ended = True
        while open_ended:
            batch, open_ended = self._next_batch()
            connection = self._commit(path, connection, batch)
            with self._committed:
                self._settled = max((self._settled, *(number for number, _, _ in batch)))
                self._committed.notify_all()
        _close(connection)

    def _next_batch(self) -> tuple[list[_Write], bool]:
        """All that is queued, waiting for the first; False at the end."""
        batch: list[_Write] = []
        with contextlib.suppress(queue.Empty):
            while True:
                item = self._queue.get(block=not batch)
                if item is None:
                    return batch, False
                batch.append(item)
        return batch, True

    def _commit(self, path: Path, connection: _Opened | None, batch: list[_Write]) -> _Opened | None:
        """Commit `batch` whole, or count it as lost. Returns the connection for the next one."""
        import sqlite3

        for _ in range(_WRITER_TRIES if batch else 0):
            try:
                connection = _reopen(path, connection)
                _commit_all(connection[0], batch)
            except (sqlite3.Error, OSError) as error:
                _close(connection)
                connection = None
                if not self._meet(path, error):
                    break
            else:
                self._saved = batch[-1][0]
                return connection
        self._lost.update(number for number, _, _ in batch)
        return connection

    # Trouble

    def _meet(self, path: Path, error: Exception, patience_s: float = math.inf) -> bool:
        """Set a damaged file aside. Whether it is worth trying again: not where the disk cannot be used, or others have
        held the right to open it for so long.
        """
        code = _code(error)
        if code in _BUSY:
            return True
        try:
            if code in _DAMAGED:
                if (aside := _set_aside(path, patience_s)) is not None:
                    self._notice(
                        "damaged",
                        f"The state file {path} was damaged; it is kept as {aside.name}, and a new one begins.",
                    )
                return True
        except BlockingIOError:
            return False
        except OSError as failure:
            error = failure
        self._notice(
            "unusable",
            f"Lyma cannot use its state file {path}: cooldowns and usage hold only in this process. "
            f"Make room on the disk, or make the folder writable ({error}).",
        )
        return False

    def _notice(self, kind: str, text: str) -> None:
        with self._notices_lock:
            if kind not in self._noticed:
                self._noticed.add(kind)
                self._notices.append(text)


def _reopen(path: Path, connection: _Opened | None, wait_s: float = _WRITER_WAITS_S) -> _Opened:
    """The connection, made anew where the file is gone or another one stands in its place."""
    if connection is not None and connection[1] == _file_number(path):
        return connection
    _close(connection)
    return _connect(path, wait_s), _file_number(path)


def _connect(path: Path, wait_s: float) -> sqlite3.Connection:
    """Open for this user only, in WAL mode, with the tables there. One process at a time; who has no time to wait (`wait_s`
    0) does not wait for the others either. Raises BlockingIOError then.
    """
    import sqlite3

    with _opening(path, math.inf if wait_s else _READER_WAITS_S):
        _make_private(path)
        connection = sqlite3.connect(path, timeout=wait_s, isolation_level=None, check_same_thread=False)
        try:
            if connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
                connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            if connection.execute("PRAGMA user_version").fetchone()[0] < SCHEMA_VERSION:
                connection.executescript(SCHEMA)
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        except sqlite3.Error:
            connection.close()
            raise
    return connection


def _make_private(path: Path) -> None:
    """SQLite gives its side files the mode of the main one. The file is not opened here when it exists: closing a
    descriptor would drop the locks that SQLite holds on it for the whole process.
    """
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    mode = path.stat(follow_symlinks=False).st_mode
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    if mode & 0o077:
        path.chmod(0o600)


def _set_aside(path: Path, patience_s: float) -> Path | None:
    """Rename a damaged file and its side files; None where another process has already done so."""
    with _opening(path, patience_s):
        if not _is_damaged(path):
            return None
        aside = path.with_name(f"{path.name}.damaged-{time.time_ns()}")
        path.rename(aside)
        for end in ("-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                path.with_name(path.name + end).rename(aside.with_name(aside.name + end))
    return aside


def _is_damaged(path: Path) -> bool:
    import sqlite3

    if not path.exists():
        return False
    connection = sqlite3.connect(path, timeout=1.0, isolation_level=None)
    try:
        return bool(connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",))
    except sqlite3.Error as error:
        return _code(error) in _DAMAGED
    finally:
        connection.close()


@contextlib.contextmanager
def _opening(path: Path, patience_s: float) -> Iterator[None]:
    """Hold the right to open or set aside `path`, among all processes. Raises BlockingIOError after `patience_s`."""
    lock = os.open(path.with_name(path.name + ".lock"), os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        _lock(lock, patience_s)
        yield
    finally:
        os.close(lock)


def _lock(descriptor: int, patience_s: float) -> None:
    deadline = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if patience_s == math.inf else fcntl.LOCK_NB))
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(0.001)
        else:
            return


def _commit_all(connection: sqlite3.Connection, batch: list[_Write]) -> None:
    """In one transaction; a statement with a value that SQLite cannot hold is left out."""
    connection.execute("BEGIN IMMEDIATE")
    for _, sql, parameters in batch:
        with contextlib.suppress(ValueError, OverflowError):
            connection.execute(sql, parameters)
    connection.execute("COMMIT")


def _close(connection: _Opened | None) -> None:
    if connection is not None:
        connection[0].close()


def _file_number(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


def _code(error: Exception) -> int:
    """SQLite's primary result code; 0 for errors that are not SQLite's."""
    return int(getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF
