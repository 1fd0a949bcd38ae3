"""Start one trusted program: fixed words, no shell, its own process group, nothing inherited that was not asked for.

The program ends when we do. Linux sends a signal at the death of a parent only if the child itself asked for it, and
`preexec_fn` would run Python between fork and exec, where a lock of another thread may be held for ever. So util-linux's
`setpriv` asks, and then becomes the program (0.5 ms; the process id stays). Where it is missing, a program ends with the
first write to our closed pipes.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from lyma_server.errors import LymaError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Process: TypeAlias = subprocess.Popen[bytes]
Reason: TypeAlias = Literal["missing", "timeout", "output"]

SETPRIV = Path("/usr/bin/setpriv")
KEPT = frozenset({
    "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER",
    "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
})  # fmt: skip
"""What a trusted program sees of our environment unless the caller builds another: no key, nothing that loads code."""

PATH = "/usr/local/bin:/usr/bin:/bin"

_running: set[Process] = set()
"""What was launched and is not collected yet."""
_changing = threading.Lock()


class HelperFailed(LymaError):
    """A trusted program gave no result: it is `missing`, ran into its `timeout`, or said more than its `output` limit."""

    def __init__(self, message: str, *, reason: Reason, detail: str = "") -> None:
        super().__init__(message, detail=detail, reason=reason)
        self.reason = reason


def helper_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The few variables that a trusted program needs."""
    return {"PATH": PATH} | {name: value for name, value in environ.items() if name in KEPT}


def launch(  # noqa: PLR0913 - what a process is given; each by name
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None,
    cwd: str | os.PathLike[str] | None,
    stdin_pipe: bool,
    pass_fds: Sequence[int] = (),
    tether: bool = True,
) -> Process:
    """Start `argv` with pipes on stdout and stderr, and on stdin a pipe or /dev/null.

    The program is the leader of a process group of its own. `tether` makes it end with the thread that started it.
    Raises HelperFailed where there is no such program or folder.
    """
    environment = helper_environment(os.environ) if env is None else dict(env)
    program = shutil.which(argv[0], path=environment.get("PATH", PATH))
    name = Path(argv[0]).name
    if program is None:
        raise HelperFailed(f"{name} is not installed, or not in PATH; install it.", reason="missing")
    words = [program, *argv[1:]]
    if tether and _can_tether():
        words = [str(SETPRIV), "--pdeathsig", "KILL", "--", *words]
    try:
        process = subprocess.Popen(  # noqa: S603 - fixed words from our own code
            words,
            stdin=subprocess.PIPE if stdin_pipe else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=cwd,
            bufsize=0,
            close_fds=True,
            pass_fds=tuple(pass_fds),
            process_group=0,
        )
    except OSError as error:
        raise HelperFailed(f"{name} could not be started: {error.strerror}.", reason="missing") from error
    with _changing:
        _running.add(process)
    return process


def signal_group(process: Process, number: signal.Signals) -> None:
    """Signal the whole group of `process`. Safe only until it has been reaped: its number may then be another's."""
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)


def collect(process: Process) -> int:
    """Kill what is left of the group, then collect the exit status (negative for a signal)."""
    with _changing:
        _running.discard(process)
    signal_group(process, signal.SIGKILL)
    return process.wait()


def end_all() -> None:
    """Kill the group of every program that runs, at once: for a process that must end and waits for nothing more.

    The kernel ends what we started, but not what that has started: the shell of a key's command, not its password manager.
    """
    with _changing:
        for process in _running:
            signal_group(process, signal.SIGKILL)


def close_pipes(process: Process) -> None:
    """Let go of what we still hold of its pipes."""
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


def has_ended(process: Process) -> bool:
    """Whether the program has ended. It is not collected, so its group keeps its number."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def spare(process: Process) -> None:
    """Let `end_all` leave this one alone: it has something to do when we are gone."""
    with _changing:
        _running.discard(process)


def open_exit(process: Process) -> int | None:
    """A descriptor that turns readable when `process` has ended; None where the system has none (not Linux 5.3+)."""
    try:
        return os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        return None


@cache
def _can_tether() -> bool:
    return SETPRIV.resolve().name == "setpriv" and os.access(SETPRIV, os.X_OK)


def limit_memory(process: Process, limit: int) -> None:
    """Bound the address space of a program that has just been started, in bytes."""
    import resource

    with suppress(ProcessLookupError, PermissionError):
        resource.prlimit(process.pid, resource.RLIMIT_AS, (limit, limit))
