"""Which tool a file is, whatever it is called: a link to `rm` is `rm`, and so is a copy of it.

A file is known by device and inode, a copy by the build that the linker wrote into it, or else by its whole content.
"""

from __future__ import annotations

import hashlib
import os
import platform
import posixpath
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attrs import frozen

from lyma_server.executor.tools import DECODERS, FETCHERS, SENDERS, TAIL_TOOLS
from lyma_server.isolation.programs import ELF, build_id, read_head
from lyma_server.isolation.sight import identity_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lyma_server.isolation.exec_request import ExecRequest

FOLDERS: Final = ("/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/bin", "/sbin")
LOADERS: Final = ("ld-linux", "ld-musl", "ld64.so", "ld.so")
"""How the names of what loads programs begin; given a program, it runs that."""

LOADER_FOLDERS: Final = ("/lib64", "/lib", "/usr/lib", f"/usr/lib/{platform.machine()}-linux-gnu")
MULTI_CALL: Final = ("busybox", "toybox", "coreutils")
"""These are the tool that their first word names."""

MULTI_CALL_MARKS: Final = {"busybox": b"BusyBox v", "toybox": b"\0toybox "}
LARGEST_MULTI_CALL: Final = 4 << 20
"""Bytes; those two are smaller."""

OTHERS: Final = frozenset(
    {"cp", "ln", "install", "chroot", "reboot", "shutdown", "halt", "poweroff", "init", "telinit", "systemctl", "crontab", "pkill",
     "killall", "killall5", "iptables", "ip6tables", "nft", "ufw", "setenforce", "auditctl", "useradd", "usermod", "userdel", "deluser",
     "passwd", "chpasswd", "visudo", "vipw", "journalctl", "cat", "sed", "tar", "zip", "git", "lyma", *MULTI_CALL}
)  # fmt: skip
NAMES: Final = TAIL_TOOLS | DECODERS | FETCHERS | SENDERS | OTHERS
"""The tools that the short list speaks of."""

LARGEST_HASHED: Final = 64 << 20
"""Bytes; no tool of the list is larger."""


@frozen
class Tool:
    """A file by each name that it goes by; `size` in bytes, `changed_ns` as its ctime."""

    path: str
    names: frozenset[str]
    size: int
    changed_ns: int


class Unrecognisable(Exception):
    """A program that may not be read, so it may be any."""


class Identities:
    """What is known of the tools on this machine. The copies are looked for when the first stranger runs."""

    def __init__(self, folders: Iterable[str] = FOLDERS) -> None:
        names: dict[tuple[int, int], set[str]] = {}
        found: dict[tuple[int, int], tuple[str, os.stat_result]] = {}
        for path in _files(folders):
            with suppress(OSError):
                status = path.stat()
                key = identity_of(status)
                names.setdefault(key, set()).add(path.name)
                found[key] = str(path), status
        self._tools = {
            key: Tool(path, frozenset(names[key]), status.st_size, status.st_ctime_ns)
            for key, (path, status) in found.items()
        }

    def name(self, request: ExecRequest) -> str | None:
        """The tool that the file of `request` is, null for one that no rule knows. Raises Unrecognisable."""
        names = self._names(request)
        if not names:
            return None
        for word in (request.argv[0], request.path):
            called = posixpath.basename(word).removeprefix("-")
            if called in names:
                return called
        loader = next((name for name in names if name.startswith(LOADERS)), None)
        return loader or next((name for name in (*MULTI_CALL, *sorted(NAMES & names)) if name in names), None)

    def _names(self, request: ExecRequest) -> frozenset[str]:
        tool = self._tools.get(request.identity)
        if tool is not None and (tool.size, tool.changed_ns) == (request.status.st_size, request.status.st_ctime_ns):
            return tool.names
        if request.head is None:
            raise Unrecognisable
        if not request.head.startswith(ELF):
            return frozenset()
        return self._copied(request, request.status.st_size)  # anew each time, see `read_head`

    def _copied(self, request: ExecRequest, size: int) -> frozenset[str]:
        build = build_id(request.head or b"")
        if build in self._builds:
            return self._builds[build].names
        twin = next((tool for tool in self._sizes.get(size, ()) if _same(request.file, tool.path)), None)
        return twin.names if twin is not None else _multi_call(request.file, size)

    @cached_property
    def _builds(self) -> dict[bytes, Tool]:
        builds = {}
        for tool in self._listed:
            with suppress(OSError):
                file = os.open(tool.path, os.O_PATH | os.O_CLOEXEC)
                try:
                    builds[build_id(read_head(file, os.fstat(file)))] = tool
                finally:
                    os.close(file)
        builds.pop(b"", None)
        return builds

    @cached_property
    def _sizes(self) -> dict[int, list[Tool]]:
        sizes: dict[int, list[Tool]] = {}
        for tool in self._listed:
            sizes.setdefault(tool.size, []).append(tool)
        return sizes

    @cached_property
    def _listed(self) -> list[Tool]:
        return [tool for tool in self._tools.values() if not NAMES.isdisjoint(tool.names) or _is_loader(tool)]


def _files(folders: Iterable[str]) -> Iterator[Path]:
    for folder in dict.fromkeys(Path(folder).resolve() for folder in folders):
        with suppress(OSError):
            yield from folder.iterdir()
    for folder in dict.fromkeys(Path(folder).resolve() for folder in LOADER_FOLDERS):
        for beginning in LOADERS:
            yield from folder.glob(f"{beginning}*")


def _is_loader(tool: Tool) -> bool:
    return any(name.startswith(LOADERS) for name in tool.names)


def _multi_call(file: int, size: int) -> frozenset[str]:
    """A program that is many tools in one, from wherever it came: it says so in its own help."""
    if size > LARGEST_MULTI_CALL:
        return frozenset()
    content = Path(f"/proc/self/fd/{file}").read_bytes()
    return frozenset(name for name, mark in MULTI_CALL_MARKS.items() if mark in content)


def _same(file: int, path: str) -> bool:
    """Whether two files hold the same; the first is an O_PATH descriptor."""
    return _digest(f"/proc/self/fd/{file}") == _digest(path)


def _digest(path: str) -> str:
    with Path(path).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256") if os.fstat(file.fileno()).st_size <= LARGEST_HASHED else None
    return digest.hexdigest() if digest else path
