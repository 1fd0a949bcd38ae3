"""The real `lyma`, as a subprocess."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

COMMAND = (sys.executable, "-m", "lyma_server")


def environment(**more: str) -> dict[str, str]:
    """The environment of this process and more."""
    return {**os.environ, **more}


def run_lyma(*arguments: str, stdin: str = "", timeout: float = 60, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run to the end, with pipes, within `timeout` seconds."""
    return subprocess.run(
        [*COMMAND, *arguments], input=stdin, capture_output=True, text=True, timeout=timeout, check=False, **options
    )


def start_lyma(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    """Start, with pipes."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen([*COMMAND, *arguments], text=True, **pipes)
