"""The first program in a cell: it gives up what is left to give up, then becomes an agent's program or runs the runner.

It is given to the cell as bytes and run alone, by the system's Python; so it imports nothing of ours, and of Python only what
it needs: the rest would take longer than all else here. Its arguments are `channel=` and the number of our descriptor, limits
by the names of resource.RLIMIT_* (`RLIMIT_CPU=10:11`, the soft and the hard one), `filter=` and a seccomp filter in
hexadecimal where there is one, and either `module=` and one below PACKAGES to run, or `--` and the words of a program.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys

CHANNEL = 3
SET_NO_NEW_PRIVILEGES, SET_SECCOMP, MODE_FILTER = 38, 22, 2
PACKAGES = "/lyma"
NOT_STARTED = 126


def main(arguments: list[str]) -> None:
    ours = arguments[: arguments.index("--")] if "--" in arguments else arguments
    order = dict(word.split("=", 1) for word in ours)
    take_channel(int(order.pop("channel")))
    steps, module = order.pop("filter", ""), order.pop("module", "")
    limit(order)
    if steps:
        install(bytes.fromhex(steps))
    if not module:
        become(arguments[len(ours) + 1 :])
    sys.path.insert(0, PACKAGES)
    __import__(module, fromlist=["main"]).main()


def take_channel(descriptor: int) -> None:
    """Put our end of the channel where the protocol says it is, and let go of all else but the three usual ones."""
    if descriptor != CHANNEL:
        os.dup2(descriptor, CHANNEL)
    os.set_inheritable(CHANNEL, True)
    os.closerange(CHANNEL + 1, 65536)


def limit(limits: dict[str, str]) -> None:
    """Set each limit for good, the soft and the hard one. What is lower already stays."""
    for name, wanted in limits.items():
        kind = getattr(resource, name)
        most = resource.getrlimit(kind)[1]
        soft, hard = (
            bound if most == resource.RLIM_INFINITY else min(bound, most) for bound in map(int, wanted.split(":"))
        )
        resource.setrlimit(kind, (soft, hard))


def install(steps: bytes) -> None:
    """Put this process under one more filter. Raises OSError: nothing runs without it."""
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(steps, len(steps))
    program = Program(len(steps) // 8, ctypes.addressof(buffer))
    for words in ((SET_NO_NEW_PRIVILEGES, 1, 0), (SET_SECCOMP, MODE_FILTER, ctypes.byref(program))):
        if libc.prctl(*words, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "the inner filter could not be loaded")


class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))


def become(words: list[str]) -> None:
    """Become an agent's own program, with none of the signals ignored that Python ignores."""
    import signal

    for each in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(each, signal.SIG_DFL)
    try:
        os.execv(words[0], words)  # noqa: S606 - to become it is what this program is for
    except OSError as error:
        os.write(2, f"lyma: {words[0]} could not be started: {error.strerror}\n".encode())
        os._exit(NOT_STARTED)


if __name__ == "__main__":
    main(sys.argv[1:])
