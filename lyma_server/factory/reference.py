"""The reference of agent.toml, made from its classes: `python -m lyma_server.factory.reference > docs/reference/agent.md`."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import attrs

from lyma_server.config import shape
from lyma_server.config.model import CeilingSettings
from lyma_server.factory.protected import NEVER, NEVER_WRITTEN
from lyma_server.factory.spec import PythonTool, Spec
from lyma_server.factory.spec_text import limits
from lyma_server.factory.template import template
from lyma_server.factory.versions import LARGEST_DEPTH, MOST_RUNNING, MOST_RUNS

if TYPE_CHECKING:
    from collections.abc import Iterable

_PREFACE = """\
# agent.toml

An agent is a folder with an `agent.toml`, and beside it the code of its tools (`tools/*.py`) and JSON Schemas
(`schema/*.json`), usually `.lyma/agents/NAME/` in your project. `lyma compile-agent` turns it into a bundle whose hash stands
for every byte of it, `lyma approve` lets that hash run in this folder, and nothing else does.

What is not listed here is an error, not ignored. A limit must be given, is a whole number of at least 1, and may not be over
`[factory.ceiling]` of your own settings. Order in lists, comments, line ends and the form of Unicode make no difference to
the hash; everything else does.

`lyma schema --agent` prints this as JSON Schema. Generated from the code by `python -m lyma_server.factory.reference`.
"""

_TOOLS = """
The code of a tool is a Python file with one function `run(args)`, which gets the arguments by its schema and returns what JSON
can say. It may import the standard library only, is at most 64 KiB, and runs nowhere but in the agent's sandbox.

Schemas are JSON Schema 2020-12 without `pattern`, `format`, remote references, recursion and fractions; a tool's and a
result's are of type `object`. What the model is told of a tool is the `description` in its schema.
"""

_GLOBS = """
## Globs

Relative to the project. In a name, `*` is any run of characters and `?` is one; a name that is `**` stands for any number of
folders. A wildcard never takes a leading dot. Whatever a glob says, these are never read or written (names in any letter case):

{never}

And these are never written:

{never_written}
"""

_CAPS = """
## Fixed limits

An agent may run agents that its `delegate.agents` names, {depth} level deep; at most {runs} runs for one that you start, and {running}
at once. There is no network: the model is asked by Lyma itself, and no setting names a provider, an address or a key.
"""


def render() -> str:
    """Return the reference as Markdown."""
    parts = shape.parts(Spec).values()
    top = [part for part in parts if isinstance(part, shape.Leaf)]
    sections = "".join(_section(part) for part in parts if isinstance(part, shape.Section))
    never = {"never": _names(NEVER), "never_written": _names(NEVER_WRITTEN)}
    caps = _CAPS.format(depth=LARGEST_DEPTH, runs=MOST_RUNS, running=MOST_RUNNING)
    example = f"\n## A template\n\n`lyma draft-agent --from-template NAME` writes it.\n\n```toml\n{template('todo-triage', CeilingSettings())}```\n"
    return f"{_PREFACE}\n## Top level\n\n{_table(top)}{sections}{_tool_table()}{_GLOBS.format(**never)}{caps}{example}"


def _section(section: shape.Section) -> str:
    leaves = [part for part in shape.parts(section.cls, section.path).values() if isinstance(part, shape.Leaf)]
    return f"\n## `[{section.path[0]}]`\n\n{section.doc}\n\n{_table(leaves)}"


def _table(leaves: Iterable[shape.Leaf]) -> str:
    ceilings = {path: name for path, name, _ in limits()}
    head = "| setting | value | default | most | meaning |\n|---|---|---|---|---|\n"
    return head + "".join(
        f"| `{leaf.path[-1]}` | {_escaped(leaf.kind.expected)} | {_default(leaf.default)} "
        f"| {_most(ceilings.get((leaf.path[0], leaf.path[-1])))} | {_escaped(leaf.doc)} |\n"
        for leaf in leaves
    )


def _tool_table() -> str:
    rows = "".join(
        f"| `{field.name}` | {_escaped(field.metadata['kind'].expected)} | {field.metadata['doc']} |\n"
        for field in attrs.fields(PythonTool)
    )
    return f"\n## `[[tools.python]]`\n{_TOOLS}\n| setting | value | meaning |\n|---|---|---|\n{rows}"


def _most(name: str | None) -> str:
    return f"`ceiling.{name}` (usually {getattr(CeilingSettings(), name):,})" if name else "-"


def _default(default: Any) -> str:
    return "needed" if default is attrs.NOTHING else f"`{json.dumps(default)}`"


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) + "."


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(render())
