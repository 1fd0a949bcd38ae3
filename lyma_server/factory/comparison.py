"""How an agent differs from the one that was approved before under its name."""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lyma_server.factory.bundle import Bundle

RUNNER_PARTS: Final = ("runner_abi", "sandbox_profile", "builtin_tools")
"""Parts of a manifest that are Lyma's own and not the agent's."""


@frozen
class Comparison:
    """`text` is a unified diff of manifest and files, empty where nothing differs; `only_runner` where all that differs is
    Lyma's own.
    """

    previous: str
    text: str
    only_runner: bool


def compare(previous: Bundle, bundle: Bundle) -> Comparison:
    """Compare two bundles, old and new."""
    old, new = _texts(previous), _texts(bundle)
    text = "".join(_difference(name, old.get(name, ""), new.get(name, "")) for name in sorted({*old, *new}))
    only_runner = previous != bundle and _own(previous.facts) == _own(bundle.facts) and _same_tools(previous, bundle)
    return Comparison(previous.hash, text, only_runner)


def _same_tools(previous: Bundle, bundle: Bundle) -> bool:
    """The same built-in tools by name, in whatever version."""
    return set(previous.facts["builtin_tools"]) == set(bundle.facts["builtin_tools"])


def _own(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if name not in RUNNER_PARTS}


def _texts(bundle: Bundle) -> dict[str, str]:
    facts = {name: value for name, value in bundle.facts.items() if name != "files"}
    manifest = json.dumps(facts, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    return {"manifest.json": manifest, **{name: bundle.text(name) for name in bundle.files}}


def _difference(name: str, old: str, new: str) -> str:
    lines = difflib.unified_diff(_lines(old), _lines(new), f"approved/{name}", f"new/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _lines(text: str) -> list[str]:
    """Lines by LF alone, as the bundle has them."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
