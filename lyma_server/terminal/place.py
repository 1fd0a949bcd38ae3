"""Which folder the agent may work in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def workspace_root(folder: Path, environ: Mapping[str, str]) -> Path | None:
    """The current folder, unless that is the home or `/`: a tool let loose there could reach too much."""
    too_wide = {Path("/"), Path(environ.get("HOME") or "/").resolve()}
    real = folder.resolve()
    return None if real in too_wide else real
