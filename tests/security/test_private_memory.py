"""A process that holds keys is closed to the user's other programs, and a crash writes none of them to a file."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.lyma import environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has PR_GET_DUMPABLE")

ASKED_AT_THE_END = """
import atexit, ctypes, sys
atexit.register(lambda: print("dumpable:", ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)))
"""
TERMINAL = "sys.argv[1:] = ['config', 'path']\nfrom lyma_server.entry import terminal\nterminal()"
SERVER = "from lyma_server.editor.app import build_default_core\nbuild_default_core()"


@pytest.mark.parametrize(("program", "dumpable"), [pytest.param("", 1, id="python alone"), (TERMINAL, 0), (SERVER, 0)])
def test_memory_is_private_once_there_are_keys(program, dumpable, tmp_path):
    result = subprocess.run(
        [sys.executable, "-c", ASKED_AT_THE_END + program],
        env=environment(LYMA_HOME=str(tmp_path)),
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.splitlines()[-1] == f"dumpable: {dumpable}"
