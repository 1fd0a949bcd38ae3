"""Agents to try the factory with, as plain data, and ways to write them as agent.toml."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lyma_server.factory.compile import Examined, Source, compile_agent, examine
from lyma_server.factory.template import toml

if TYPE_CHECKING:
    from lyma_server.factory.bundle import Bundle

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "agents"

LIMITS: dict[tuple[str, str], int] = {
    ("model", "max_output_tokens"): 2048,
    ("files", "max_files"): 5000,
    ("files", "max_read_bytes"): 67108864,
    ("files", "max_write_bytes"): 1048576,
    ("budget", "max_turns"): 12,
    ("budget", "max_tool_calls"): 60,
    ("budget", "max_tokens"): 60000,
    ("budget", "max_cost_micros"): 200000,
    ("budget", "wall_s"): 180,
    ("budget", "cpu_s"): 60,
    ("budget", "memory_mb"): 256,
    ("budget", "scratch_mb"): 16,
    ("budget", "processes"): 1,
    ("output", "max_bytes"): 65536,
}

TOOL = '"""Counts."""\nimport json\n\n\ndef run(args):\n    return {"count": len(args)}\n'
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
FILES = {"tools/count.py": TOOL, "schema/count.json": json.dumps(SCHEMA), "schema/output.json": json.dumps(SCHEMA)}


def document(**changes: Any) -> dict[str, Any]:
    """A whole agent. `changes` are by setting: `name="x"`, or `budget__max_turns=3`; `...` takes a setting away."""
    made: dict[str, Any] = {
        "lyma_agent": 1,
        "name": "changelog-writer",
        "purpose": "Summarise commits",
        "instructions": "Read the café's commits.\nWrite a line for each.\n",
        "tools": {
            "allow": ["fs.grep", "fs.read", "fs.write"],
            "python": [{"name": "count", "file": "tools/count.py", "schema": "schema/count.json"}],
        },
        "files": {"read": ["CHANGELOG.md", "src/**"], "write": ["CHANGELOG.md"]},
        "output": {"schema": "schema/output.json"},
    }
    for (section, name), value in LIMITS.items():
        made.setdefault(section, {})[name] = value
    for path, value in changes.items():
        *above, last = path.split("__")
        table = made
        for step in above:
            table = table.setdefault(step, {})
        if value is ...:
            table.pop(last)
        else:
            table[last] = value
    return copy.deepcopy(made)


def text_of(made: dict[str, Any]) -> bytes:
    """As agent.toml."""
    plain = [f"{name} = {toml(value)}" for name, value in made.items() if not isinstance(value, dict)]
    tables = [(name, value) for name, value in made.items() if isinstance(value, dict)]
    sections = [
        f"[{name}]\n" + "\n".join(f"{each} = {toml(value)}" for each, value in table.items()) for name, table in tables
    ]
    return "\n".join([*plain, *sections, ""]).encode()


def source(files: dict[str, str | bytes] | None = None, **changes: Any) -> Source:
    given = {**FILES, **(files or {})}
    return Source(
        text_of(document(**changes)),
        {name: text if isinstance(text, bytes) else text.encode() for name, text in given.items()},
    )


def bundle(files: dict[str, str | bytes] | None = None, **changes: Any) -> Bundle:
    return compile_agent(source(files, **changes))


def plain_bundle(name: str = "plain", **changes: Any) -> Bundle:
    """An agent without files of its own."""
    return bundle(name=name, tools__python=[], output__schema="", **changes)


def examined(files: dict[str, str | bytes] | None = None, **changes: Any) -> Examined:
    return examine(source(files, **changes))


def codes(found: Examined) -> set[tuple[str, str]]:
    """What is wrong: codes with the setting, or the file."""
    assert (found.bundle is None) == bool(found.diagnostics)
    assert all(each.message.endswith((".", "?")) and each.hint for each in found.diagnostics)
    return {(each.code, each.path or each.file) for each in found.diagnostics}
