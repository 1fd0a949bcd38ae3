"""Where the log goes: warnings to stderr, everything to a file in Lyma's home, secrets nowhere."""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_FORMAT: Final = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"
_SIZE_LIMIT: Final = 4 << 20


class RedactingFormatter(logging.Formatter):
    """Takes secrets out of the whole record, its traceback included."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__(_FORMAT)
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        """The record as it may be written."""
        return self._redact(super().format(record))


def log_to_stderr(redact: Callable[[str], str]) -> None:
    """Begin to log warnings to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(RedactingFormatter(redact))
    handler.setLevel(logging.WARNING)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    logging.getLogger("pygls").setLevel(logging.WARNING)


def log_to_file(folder: Path, redact: Callable[[str], str]) -> None:
    """Log to `folder` as well, in a file that only its owner reads. A folder that cannot be written is no reason to fail."""
    path = folder / "server.log"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > _SIZE_LIMIT:
            path.replace(folder / "server.log.1")
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_NOFOLLOW, 0o600))
        handler = logging.FileHandler(path, encoding="utf-8", errors="backslashreplace")
    except OSError as problem:
        logging.getLogger(__name__).warning("the log file cannot be opened: %s", problem.strerror)
        return
    handler.setFormatter(RedactingFormatter(redact))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    logging.captureWarnings(capture=True)
