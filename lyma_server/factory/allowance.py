"""What a run may use: the least of what its manifest sets, what the person's ceiling allows, and what runs above have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from attrs import evolve

from lyma_server.factory.budget import Limits, limits_of
from lyma_server.factory.staging import Reach

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lyma_server.config.model import CeilingSettings

_CEILINGS: Final = {
    "turns": "max_turns",
    "tool_calls": "max_tool_calls",
    "tokens": "max_tokens",
    "cost_micros": "max_cost_micros",
    "files_read": "max_files",
    "bytes_read": "max_read_bytes",
    "bytes_written": "max_write_bytes",
    "bytes_output": "max_output_bytes",
}
"""What a budget counts, and the setting of `[factory.ceiling]`, which may have been lowered since the agent was compiled."""

KERNEL: Final = ("cpu_s", "memory_mb", "scratch_mb", "processes", "wall_s")


def allowed(facts: Mapping[str, Any], ceiling: CeilingSettings) -> Limits:
    """The limits of a run by itself."""
    own = limits_of(facts)
    lower = {name: min(getattr(own.most, name), getattr(ceiling, setting)) for name, setting in _CEILINGS.items()}
    return Limits(evolve(own.most, **lower), min(own.wall_s, ceiling.wall_s))


def kernel_bounds(
    facts: Mapping[str, Any], ceiling: CeilingSettings, above: Mapping[str, int] | None
) -> dict[str, int]:
    """What the kernel holds a run to, none of it more than the run `above` has."""
    budget = facts["spec"]["budget"]
    own = {name: min(budget[name], getattr(ceiling, name)) for name in KERNEL}
    return own if above is None else {name: min(value, above[name]) for name, value in own.items()}


def reach_of(facts: Mapping[str, Any]) -> Reach:
    """The files that a manifest names; it can write only if it has the tool for it, or is a program of its own."""
    spec = facts["spec"]
    writes = "fs.write" in spec["tools"]["allow"] or facts["kind"] == "exec"
    return Reach((tuple(spec["files"]["read"]),), (tuple(spec["files"]["write"]) if writes else (),))
