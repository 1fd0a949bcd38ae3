"""What befalls a file: a full disk, a right that is missing. No fault of Lyma's, so no incident but a sentence."""

from __future__ import annotations

import os

from lyma_server.errors import refusal_of
from lyma_server.terminal.plain import plain_line


def mishap(error: Exception) -> str | None:
    """The sentence for it; null where no file is named, or where it may be a fault of ours."""
    name = error.filename if isinstance(error, OSError) else None
    refusal = refusal_of(error)
    if refusal is None or not isinstance(name, str | bytes):
        return None
    return f"{plain_line(os.fsdecode(name))}: {refusal}."
