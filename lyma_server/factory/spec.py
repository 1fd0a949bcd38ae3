"""What an agent is: every setting of agent.toml, with its type, default and meaning.

This is the only place that knows them: reading, the limits' check, the JSON Schema, the template and the reference are
made from these classes. A limit has no default: whoever writes an agent says how much it may use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import attrs

from lyma_server.config.kinds import Choice, Kind, ListOf, Record
from lyma_server.factory.spec_kinds import FILE_NAME, Constant, Glob, Matching, Prose, Several
from lyma_server.factory.versions import BUILTIN_TOOLS, SPEC_FORMAT

if TYPE_CHECKING:
    from lyma_server.protocol.base import Json

NAME = r"[a-z][a-z0-9-]{0,47}"


def setting(doc: str, kind: Kind | None = None, default: Any = attrs.NOTHING) -> Any:
    """A field with its meaning in one sentence."""
    kinds: dict[str, Any] = {} if kind is None else {"kind": kind}
    return attrs.field(default=default, metadata={"doc": doc, "least": 0, **kinds})


def limit(doc: str, ceiling: str) -> Any:
    """A whole number of at least 1 that must be given, at most the setting `ceiling` of `[factory.ceiling]`."""
    return attrs.field(metadata={"doc": doc, "least": 1, "ceiling": ceiling})


@attrs.frozen(kw_only=True)
class ModelPart:
    class_: Literal["fast", "balanced", "strong"] = setting("How able the model must be; which one that is, you set.", default="balanced")  # fmt: skip
    max_output_tokens: int = limit("Tokens in one answer of the model.", "max_output_tokens")


@attrs.frozen(kw_only=True, order=True)
class PythonTool:
    name: str = setting("What the model calls it.", Matching("[a-z][a-z0-9_]{0,31}", "a name of letters, digits and _, such as count"))  # fmt: skip
    file: str = setting(
        "Its code.", Matching(rf"tools/{FILE_NAME}\.py", "a file in tools/, such as tools/count.py", "bad_path")
    )
    schema: str = setting("JSON Schema of its arguments.", Matching(rf"schema/{FILE_NAME}\.json", "a file in schema/, such as schema/count.json", "bad_path"))  # fmt: skip


PYTHON_TOOLS = ListOf(
    Record(
        PythonTool,
        {field.name: field.metadata["kind"] for field in attrs.fields(PythonTool)},
        "a table with name, file and schema",
    ),
    "tables with name, file and schema",
)


@attrs.frozen(kw_only=True)
class ToolsPart:
    allow: tuple[str, ...] = setting("Tools of Lyma's.", Several(Choice(tuple(BUILTIN_TOOLS), "unknown_tool"), "tools"), ())  # fmt: skip
    python: tuple[PythonTool, ...] = setting("Tools of the agent's own, which run in its sandbox.", PYTHON_TOOLS, ())


@attrs.frozen(kw_only=True)
class FilesPart:
    read: tuple[str, ...] = setting("What it may read.", Several(Glob(writing=False), "globs"), ())
    write: tuple[str, ...] = setting("What it may change, as a patch.", Several(Glob(writing=True), "globs"), ())
    max_files: int = limit("Files that it may read.", "max_files")
    max_read_bytes: int = limit("Bytes that it may read.", "max_read_bytes")
    max_write_bytes: int = limit("Bytes that it may write.", "max_write_bytes")


@attrs.frozen(kw_only=True)
class NetworkPart:
    mode: str = setting("There is no network.", Choice(("none",)), "none")


@attrs.frozen(kw_only=True)
class BudgetPart:
    max_turns: int = limit("Model calls.", "max_turns")
    max_tool_calls: int = limit("Tool calls.", "max_tool_calls")
    max_tokens: int = limit("Tokens, in and out.", "max_tokens")
    max_cost_micros: int = limit("Integer USD micros.", "max_cost_micros")
    wall_s: int = limit("Seconds.", "wall_s")
    cpu_s: int = limit("Seconds of processor time.", "cpu_s")
    memory_mb: int = limit("Memory of each process in MiB.", "memory_mb")
    scratch_mb: int = limit("Scratch space in MiB; a file takes at least 1 KiB of it.", "scratch_mb")
    processes: int = limit("Processes and threads at once.", "processes")


@attrs.frozen(kw_only=True)
class DelegatePart:
    agents: tuple[str, ...] = setting("Hashes of agents that it may run.", Several(Matching("sha256:[0-9a-f]{64}", "the hash of a compiled agent, in full"), "hashes", 16), ())  # fmt: skip
    max_depth: int = setting("How deep runs may nest below it.", default=0)
    max_runs: int = setting("How many runs it may start.", default=0)


@attrs.frozen(kw_only=True)
class OutputPart:
    schema: str = setting('JSON Schema of its result; empty: a text, as {"text": ...}.', Matching(rf"schema/{FILE_NAME}\.json", "a file in schema/, such as schema/output.json, or empty", "bad_path", optional=True), "")  # fmt: skip
    max_bytes: int = limit("Bytes of its result.", "max_output_bytes")


@attrs.frozen(kw_only=True)
class Spec:
    """A whole agent.toml, sound in itself. Lists whose order means nothing are sorted."""

    lyma_agent: int = setting("The version of this format.", Constant(SPEC_FORMAT))
    name: str = setting("What people call it.", Matching(NAME, "a name of small letters, digits and -, such as todo-triage"))  # fmt: skip
    purpose: str = setting("What it is for.", Prose(280))
    instructions: str = setting("What the model is told.", Prose(16 << 10, lines=True))
    model: ModelPart = setting("The model, never by its name.")
    tools: ToolsPart = setting("What it may do.")
    files: FilesPart = setting("What it may read and change.")
    network: NetworkPart = setting("The network.", default=NetworkPart())
    budget: BudgetPart = setting("What it may use up.")
    delegate: DelegatePart = setting("Agents that it may run.", default=DelegatePart())
    output: OutputPart = setting("What it gives back.")


def as_json(part: Any) -> Json:
    """A specification, or a part of it, as plain data; the field for `class` is `class_`."""
    if attrs.has(type(part)):
        return {field.name.rstrip("_"): as_json(getattr(part, field.name)) for field in attrs.fields(type(part))}
    return [as_json(each) for each in part] if isinstance(part, tuple) else part


def named_files(spec: Spec) -> tuple[str, ...]:
    """The files beside agent.toml that belong to the agent, each once."""
    tools = (name for tool in spec.tools.python for name in (tool.file, tool.schema))
    return tuple(sorted({*tools, spec.output.schema} - {""}))
