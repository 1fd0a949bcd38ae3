"""What the processes of a cell, and bubblewraps of ours, are known by. Standard library only."""

from __future__ import annotations

from typing import Final

OURS: Final = "/lyma"
"""Where the bundle and the runner lie inside."""

ENTER_INSIDE: Final = f"{OURS}/enter.py"

BUBBLEWRAP: Final = "bwrap"
OUR_WORD: Final = "lyma_server"
"""Stands in some word of each bubblewrap that we start for commands."""

FIRST_USER: Final = 59_900
"""The first of the users that own nothing; each slot has one. The last that adduser gives out is 59999."""
SLOTS: Final = 64
