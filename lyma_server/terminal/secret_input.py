"""How a key comes in: typed unseen on a terminal, or on stdin. Never on a command line, which others can read."""

from __future__ import annotations

import sys
import termios

from lyma_server.errors import UsageError
from lyma_server.secret import Secret

LONGEST = 1 << 16
"""In characters. No key is longer, and a wrong file may be."""


def read_key(prompt: str) -> Secret:
    """Read one key. Raises UsageError where there is none, or no way to keep it from being seen."""
    if sys.stdin.isatty():
        return one_key(read_unseen(prompt))
    try:
        return one_key(sys.stdin.read(LONGEST + 1))
    except UnicodeDecodeError:
        raise UsageError("What was given is no text, so it is no key; nothing was changed.") from None


def one_key(text: str) -> Secret:
    """Take the only key in `text`. Raises UsageError where there is none, or more than one."""
    words = text.split()
    if not words:
        raise UsageError("No key was given; nothing was changed.")
    if len(text) > LONGEST or (len(words) > 1 and not text.startswith("cmd:")):
        raise UsageError("More than one key was given; add them one at a time. Nothing was changed.")
    return Secret(text.strip())


def read_line(prompt: str) -> str:
    """Read a line from the terminal. Raises EOFError at its end.

    `input` writes the prompt and reads in one go in C, where a Ctrl-C that comes in between is seen with the next key only.
    """
    try:
        sys.stdout.write(prompt)
        sys.stdout.flush()
        line = sys.stdin.readline()
    except KeyboardInterrupt:
        end_line()
        raise
    if not line:
        end_line()
        raise EOFError
    return line.rstrip("\n")


def end_line() -> None:
    """Leave the prompt's line, so that what is said next, by us or by the shell, begins a line of its own."""
    sys.stderr.write("\n")
    sys.stderr.flush()


def read_unseen(prompt: str) -> str:
    """Read a line from the terminal without showing it. Raises EOFError at its end, UsageError where it cannot hide."""
    import getpass

    try:
        termios.tcgetattr(sys.stdin.fileno())
        return getpass.getpass(prompt)
    except (EOFError, KeyboardInterrupt):
        end_line()
        raise
    except (termios.error, OSError, getpass.GetPassWarning) as error:
        raise UsageError("This terminal cannot hide what is typed; pipe the key in instead.") from error
