"""What Lyma itself puts into a bundle. Bumped by hand where behaviour changes, never for a comment: each bump asks every
person for every approval again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

SPEC_FORMAT: Final = 1
"""The only value of `lyma_agent`."""

MANIFEST_FORMAT: Final = 1

RUNNER_ABI: Final = 1
"""How the runner calls tools and speaks to its parent."""

SANDBOX_PROFILE: Final = 1
"""What a run is shut in by."""

BUILTIN_TOOLS: Final[Mapping[str, int]] = {"fs.grep": 1, "fs.list": 1, "fs.read": 1, "fs.write": 1}
"""The closed set of tools that Lyma offers, each with the version of its behaviour."""

LARGEST_DEPTH: Final = 1
"""An agent may run agents that its manifest names; those may not."""

MOST_RUNS: Final = 16
"""Runs of one root, all together."""

MOST_RUNNING: Final = 4
"""Runs of one root at once."""
