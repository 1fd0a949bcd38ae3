"""What befalls a file is told by its name and its remedy; all else stays an incident."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest

from lyma_server.errors import REMEDIES
from lyma_server.terminal.mishaps import mishap


@pytest.mark.parametrize("number", REMEDIES)
def test_a_file_is_named_with_its_remedy(number: int) -> None:
    told = mishap(OSError(number, os.strerror(number), b"/some/file"))
    assert told is not None
    assert told.startswith("/some/file: ")
    assert told.endswith(f"; {REMEDIES[number]}.")


@pytest.mark.parametrize(
    "error",
    [ValueError("/some/file"), OSError(errno.ENOSPC, "no file named"), OSError(errno.EISDIR, "odd", "/some/file")],
)
def test_what_may_be_a_fault_of_ours_is_none(error: Exception) -> None:
    assert mishap(error) is None


def test_the_command_says_it() -> None:
    code = (
        "import sys; from lyma_server.terminal import ask, main\n"
        "def full(args): raise OSError(28, 'No space left on device', '/some/file')\n"
        "ask.run = full; sys.exit(main.main(['ask', 'hi'], print))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "lyma: /some/file: no space left on device; make room there.\n"
