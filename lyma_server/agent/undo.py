"""The bytes that undo what a turn changed, kept once for each content."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class UndoFolder:
    """A folder of contents named by their SHA-256, 0700 with files of 0600. Created when the first is kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def keep(self, content: bytes | None) -> str | None:
        """Keep `content` and return its name. Raises OSError."""
        if content is None:
            return None
        name = hashlib.sha256(content).hexdigest()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            descriptor = os.open(self.folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            return name
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
        except OSError:
            (self.folder / name).unlink(missing_ok=True)
            raise
        return name

    def content(self, name: str) -> bytes:
        """What was kept under `name`. Raises OSError, or ValueError where it is not what its name says."""
        content = (self.folder / name).read_bytes()
        if hashlib.sha256(content).hexdigest() != name:
            raise ValueError(f"{self.folder / name} is damaged")
        return content
