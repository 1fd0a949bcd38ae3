"""Bundles that bring a program of their own: the external factory itself, and agents with their own loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lyma_server.errors import CompileFailed, UsageError
from lyma_server.factory.bundle import INSTRUCTIONS, TREE, make_bundle
from lyma_server.factory.trees import entries
from lyma_server.factory.versions import MANIFEST_FORMAT, RUNNER_ABI, SANDBOX_PROFILE, SPEC_FORMAT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lyma_server.config.model import ExternalSettings
    from lyma_server.factory.bundle import Bundle
    from lyma_server.protocol.base import Json

INSIDE: Final = "/tree"
PROGRAMS: Final = "/usr/bin/"

FACTORY_NAME: Final = "external-factory"
_PURPOSE: Final = "Drafts and compiles agents, as your settings ask for"
_TOLD: Final = "You help a program that drafts and compiles agents. Do what it asks, and answer with nothing else.\n"


def factory_bundle(command: Sequence[str], source: str, listing: bytes, settings: ExternalSettings) -> Bundle:
    """The external factory as a bundle. `source` is where its tree was, which words of `command` may name.

    Raises UsageError where the command names no program in the tree or the system's own.
    """
    facts: dict[str, Json] = {
        "format": MANIFEST_FORMAT,
        "kind": "factory",
        "spec": _factory_spec(settings),
        "program": list(inside_words(command, source, listing)),
        "runner_abi": RUNNER_ABI,
        "sandbox_profile": SANDBOX_PROFILE,
        "builtin_tools": {},
        "delegates": [],
    }
    return make_bundle(facts, {INSTRUCTIONS: _TOLD.encode(), TREE: listing})


def with_program(bundle: Bundle, program: Sequence[str], listing: bytes) -> Bundle:
    """An agent that was compiled as data, with a program of its own in place of Lyma's runner. Raises CompileFailed."""
    if bundle.facts["spec"]["tools"]["python"]:
        problem = f"{bundle.name} has a program of its own, so it can have no tools in Python."
        raise CompileFailed(problem, diagnostics=[])
    facts = {name: value for name, value in bundle.facts.items() if name != "files"}
    words = list(inside_words(program, INSIDE, listing))
    return make_bundle({**facts, "kind": "exec", "program": words}, {**bundle.files, TREE: listing})


def inside_words(command: Sequence[str], source: str, listing: bytes) -> tuple[str, ...]:
    """The words of a command by the paths that are right inside. Raises UsageError where it starts nothing."""
    files = {path for path, _ in entries(listing)}
    words = tuple(_inside(word, source.rstrip("/"), files) for word in command)
    first = words[0] if words else ""
    if first and "/" not in first:
        first = f"{PROGRAMS}{first}"
    in_tree = first.removeprefix(f"{INSIDE}/") in files and first.startswith(f"{INSIDE}/")
    if not in_tree and not (first.startswith(PROGRAMS) and ".." not in first):
        raise UsageError(f"{first[:100]!r} is no program in the tree and none in {PROGRAMS}; set factory.command.")
    return (first, *words[1:])


def _inside(word: str, source: str, files: set[str]) -> str:
    if word.startswith(f"{source}/"):
        return INSIDE + word.removeprefix(source)
    return f"{INSIDE}/{word}" if word in files else word


def _factory_spec(settings: ExternalSettings) -> Mapping[str, Any]:
    """As a specification would have it, of what a factory may use."""
    budget = ("max_turns", "max_tokens", "max_cost_micros", "wall_s", "cpu_s", "memory_mb", "scratch_mb", "processes")
    return {
        "lyma_agent": SPEC_FORMAT,
        "name": FACTORY_NAME,
        "purpose": _PURPOSE,
        "model": {"class": settings.model, "max_output_tokens": settings.max_output_tokens},
        "tools": {"allow": [], "python": []},
        "files": {"read": [], "write": [], "max_files": 1, "max_read_bytes": 1, "max_write_bytes": 1},
        "network": {"mode": "none"},
        "budget": {**{name: getattr(settings, name) for name in budget}, "max_tool_calls": 1},
        "delegate": {"agents": [], "max_depth": 0, "max_runs": 0},
        "output": {"schema": "", "max_bytes": 1},
    }
