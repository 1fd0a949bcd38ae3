"""Takes single defences away, for the controls: what an evil agent then can do shows what the defence is for.

Only tests can: production code has no switch for any of it, so constants and functions of modules are replaced here.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

from lyma_server.isolation import cell, cell_filter, cell_life, cell_mounts
from lyma_server.isolation.seccomp import ALLOW, RETURN, assemble

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NAMESPACES = ("user", "ipc", "pid", "net", "uts", "cgroup-try")
NOTHING_REFUSED = assemble([("", (RETURN, ALLOW, None, None))])


def replaced(module: object, name: str, value: object) -> Callable[[], object]:
    return lambda: mock.patch.object(module, name, value)


def apart(shared: list[str], *, capable: bool) -> tuple[str, ...]:
    """The namespaces without those that are shared, with or without every capability."""
    own = [f"--unshare-{name}" for name in NAMESPACES if name not in shared]
    closed = ["--disable-userns"] if "user" not in shared else []
    return (*own, *closed, "--die-with-parent", "--new-session", "--cap-add" if capable else "--cap-drop", "ALL")


def without_limits(*names: str) -> Callable[[], object]:
    kept = cell.kernel_limits

    def weaker(limits):
        return {name: bound for name, bound in kept(limits).items() if name not in names}

    return replaced(cell, "kernel_limits", weaker)


def scratch_without_size(_size: int) -> Iterator[str]:
    return iter(("--tmpfs", cell_mounts.WORK, "--symlink", "work", "/tmp"))


@contextmanager
def open_descriptor() -> Iterator[None]:
    """One more that nothing closes, of what lies outside."""
    launch = cell._launch
    text = cell.ENTER.read_text().replace("    os.closerange(CHANNEL + 1, 65536)\n", "")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        enter = Path(folder, "enter.py")
        enter.write_text(text)
        stack.enter_context(mock.patch.object(cell, "ENTER", enter))
        secret = os.open("/etc/passwd", os.O_RDONLY)
        stack.callback(os.close, secret)
        stack.enter_context(
            mock.patch.object(cell, "_launch", lambda words, given, **more: launch(words, (*given, secret), **more))
        )
        yield


def ask_only(self: cell_life.Cell, reason: cell_life.Reason) -> None:
    """A signal that programs may ignore."""
    import signal

    if self._first is not None and reason == "stopped":
        self._reason = "stopped"
        signal.pidfd_send_signal(self._first, signal.SIGTERM)


DEFENCES: dict[str, Callable[[], object]] = {
    "filters": lambda: mock.patch.multiple(
        cell_filter, outer_filter=lambda *, alone: NOTHING_REFUSED, inner_filter=lambda: NOTHING_REFUSED
    ),
    "inner filter": replaced(cell_filter, "inner_filter", lambda: NOTHING_REFUSED),
    "late inner filter": lambda: mock.patch.object(cell_filter, "outer_filter", return_value=cell_filter.inner_filter()),
    "own files": replaced(cell_mounts, "PROGRAMS", (*cell_mounts.PROGRAMS, "--ro-bind", "/", "/host")),
    "environment": lambda: mock.patch.object(cell, "ENVIRONMENT", {**cell.ENVIRONMENT, **os.environ}),
    "proc": replaced(cell_mounts, "KERNEL", ("--proc", "/proc")),
    "sys": replaced(cell_mounts, "KERNEL", (*cell_mounts.KERNEL, "--ro-bind", "/sys", "/sys")),
    "drop": replaced(cell, "drop", lambda slot: ()),
    "who": replaced(cell_mounts, "WHO", ()),
    "devices": replaced(cell_mounts, "DEVICES", ("--dev", "/dev")),
    "closed": replaced(cell_mounts, "CLOSED", ()),
    "read-only inputs": lambda: mock.patch.object(cell_mounts, "_folders", writable_folders),
    "descriptors": open_descriptor,
    "memory": without_limits("RLIMIT_AS"),
    "cpu": without_limits("RLIMIT_CPU"),
    "watch": replaced(cell_life.Cell, "watch", lambda self, *limits: None),
    "processes": without_limits("RLIMIT_NPROC"),
    "disk": lambda: _both(
        without_limits("RLIMIT_FSIZE"), replaced(cell_mounts, "_scratch", scratch_without_size)
    ),
    "output": replaced(cell_life, "OUTPUT_LIMIT", 1 << 40),
    "kill": replaced(cell_life.Cell, "kill", ask_only),
}  # fmt: skip


def writable_folders(contents: cell_mounts.Contents) -> Iterator[str]:
    return iter(("--bind", str(contents.input_folder), cell_mounts.INPUT))


@contextmanager
def _both(*parts: Callable[[], object]) -> Iterator[None]:
    with ExitStack() as stack:
        for part in parts:
            stack.enter_context(part())
        yield


@contextmanager
def weaker(names: list[str]) -> Iterator[None]:
    """Without the defences of these names; those of namespaces are `own net`, `own pid`, `own user`."""
    shared = [name[4:] for name in names if name.startswith("own ") and name[4:] in NAMESPACES]
    with ExitStack() as stack:
        if shared or "capabilities" in names:
            words = apart(shared, capable="capabilities" in names)
            stack.enter_context(mock.patch.object(cell_mounts, "APART", words))
        for name in names:
            if name in DEFENCES:
                stack.enter_context(DEFENCES[name]())
        yield
