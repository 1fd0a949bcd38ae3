"""Real llama.cpp servers as a fixture has them: a process, an address, and what its slots do."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = Path(__file__).with_name("server_program.py")


@frozen
class LlamaServer:
    """`url` has no path; the two wire formats are found where a provider's `base_url` puts them."""

    url: str
    model: str
    pid: int

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def anthropic_url(self) -> str:
        return self.url

    def busy_slots(self) -> int:
        """How many answers are being generated now."""
        with urllib.request.urlopen(f"{self.url}/slots", timeout=5) as reply:
            return sum(slot["is_processing"] for slot in json.load(reply))


@contextmanager
def serving(model: Path, alias: str, *, context: int = 16384, parallel: int = 2) -> Iterator[LlamaServer]:
    """Run a server for as long as the block; `context` tokens are shared by `parallel` slots."""
    words = [sys.executable, "-I", str(PROGRAM), str(model), alias, str(context), str(parallel)]
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log) as process,
    ):
        try:
            url = process.stdout.readline().decode().strip()
            if not url:
                log.seek(0)
                raise RuntimeError(log.read().decode(errors="replace"))
            yield LlamaServer(url, alias, process.pid)
        finally:
            process.kill()
