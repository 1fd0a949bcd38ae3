"""The server that an editor starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def serve(argv: Sequence[str]) -> int:
    """Serve the editor until it leaves and return the exit code."""
    raise NotImplementedError(argv)
