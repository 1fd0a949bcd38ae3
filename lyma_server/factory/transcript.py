"""What is kept of a run in `runs/<id>/`: all that was said, line by line as it happens, its patch and its result.

Only its owner can read it, and no known secret is in it.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from typing import TYPE_CHECKING, Final

from lyma_server.errors import LymaError, UsageError
from lyma_server.factory.folder import Folder, Unfit

if TYPE_CHECKING:
    from pathlib import Path

    from lyma_server.protocol.base import Json
    from lyma_server.secret import Redactor

TRANSCRIPT: Final = "transcript.jsonl"
RESULT: Final = "result.json"
PATCH: Final = "patch.diff"

DAY_S: Final = 86_400

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


def prune(runs: Path, oldest: float) -> int:
    """Remove the folders of runs that ended before `oldest`, in seconds since 1970; the number removed."""
    removed = 0
    for folder in runs.iterdir():
        try:
            last = (folder / TRANSCRIPT).lstat().st_mtime
        except OSError:
            continue
        if last < oldest and not folder.is_symlink():
            shutil.rmtree(folder, ignore_errors=True)
            removed += 1
    return removed


class Transcript:
    """The folder of one run. Raises LymaError where the disk refuses."""

    def __init__(self, folder: Path, redactor: Redactor) -> None:
        """Make the folder. Raises UsageError where there is a run of that name already."""
        self.path = folder / TRANSCRIPT
        self._folder = folder
        self._redactor = redactor
        self._began = time.monotonic()
        try:
            folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(mode=0o700)
            self._descriptor = os.open(self.path, _NEW, 0o600)
        except FileExistsError:
            raise UsageError(f"There is a run named {folder.name} already; choose another name.") from None
        except OSError as error:
            raise self._refused(error) from error

    def note(self, kind: str, **facts: Json) -> None:
        """Write one line; `ms` in it are milliseconds since the run began."""
        line = self._encoded({"ms": round((time.monotonic() - self._began) * 1000), "type": kind, **facts})
        try:
            os.write(self._descriptor, line)
        except OSError as error:
            raise self._refused(error) from error

    def write_patch(self, text: str) -> Path:
        """Put the patch beside the transcript. It is not redacted: it must be what would be applied."""
        return self._put(PATCH, text.encode())

    def write_result(self, result: dict[str, Json]) -> Path:
        """Put the result beside the transcript."""
        return self._put(RESULT, self._encoded(result))

    def close(self) -> None:
        """Close the file. Idempotent."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _put(self, name: str, content: bytes) -> Path:
        try:
            with Folder.open(self._folder) as folder:
                folder.replace(name, content, 0o600)
        except (Unfit, OSError) as error:
            raise self._refused(error) from error
        return self._folder / name

    def _encoded(self, facts: dict[str, Json]) -> bytes:
        return (self._redactor.redact(json.dumps(facts, ensure_ascii=False)) + "\n").encode("utf-8", "replace")

    def _refused(self, error: Exception) -> LymaError:
        return LymaError(f"{self._folder} cannot be written, so the run ended; make room there.", detail=str(error))
