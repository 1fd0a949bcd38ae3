"""The reference of the settings, made from the model: `python -m lyma_server.config.reference > docs/reference/config.md`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import attrs

from lyma_server.config import model, shape
from lyma_server.config.environment import variable_of
from lyma_server.config.kinds import ListOf, Record
from lyma_server.config.presets import PRESETS

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREFACE = """\
# Configuration

`~/.lyma/config.toml` (or `config.toml` in `$LYMA_HOME`), mode 0600. Each setting also has a variable and can be set with
`lyma config set NAME VALUE`; `lyma config show` prints every value with where it came from.

Precedence: defaults < file < variables < flags. In a variable, items of a list are separated by commas, or the list is
written as in TOML (`[...]`). An empty variable counts as not set. What is not listed here is an error, not ignored.

There is no setting for the blacklist of commands: nothing switches it off.

Generated from the code by `python -m lyma_server.config.reference`.
"""

_PROVIDERS_PREFACE = """
These need a key at most. Model names are hints of November 2026; `lyma models` lists what a provider offers today.

| name | address | variable of its keys | model | fast, balanced, strong |
|---|---|---|---|---|
"""

_AFTER_PROVIDERS = """
Several keys: `NAME`, `NAME_2`, `NAME_3` …, or separated by commas. These variables count where a provider has no `keys`
of its own. `ANTHROPIC_BASE_URL` and `OPENAI_BASE_URL` count where it has no `base_url`. Keys of Qwen and Kimi that were
made in mainland China work only at the second address: set `base_url`.
"""


def render() -> str:
    """Return the reference as Markdown."""
    top, sections = [], []
    for part in shape.parts(model.Settings).values():
        if isinstance(part, shape.Leaf):
            top.append(part)
        else:
            sections.append("".join(_section(part)))
    records = "".join(
        _record(leaf.path, leaf.kind.item)
        for leaf in shape.leaves()
        if isinstance(leaf.kind, ListOf) and isinstance(leaf.kind.item, Record)
    )
    return f"{_PREFACE}\n## Top level\n\n{_table(top)}{''.join(sections)}{records}{_presets()}"


def _section(section: shape.Section) -> Iterator[str]:
    path = shape.inside(section, "NAME")
    own = [part for part in shape.parts(section.cls, path).values() if isinstance(part, shape.Leaf)]
    yield f"\n## `[{'.'.join(path)}]`\n\n{section.doc}\n\n{_table(own)}"
    for part in shape.parts(section.cls, path).values():
        if isinstance(part, shape.Section):
            yield from _section(part)


def _table(leaves: list[shape.Leaf]) -> str:
    head = "| setting | value | default | variable | meaning |\n|---|---|---|---|---|\n"
    return head + "".join(
        f"| `{leaf.path[-1]}` | {_escaped(leaf.kind.expected)} | {_default(leaf.default)} | `{variable_of(leaf.path)}` "
        f"| {leaf.doc} |\n"
        for leaf in leaves
    )


def _record(path: tuple[str, ...], record: Record) -> str:
    name = ".".join("NAME" if step == shape.ANY_NAME else step for step in path)
    long_form = name.removesuffix("s") if name.endswith("keys") else name
    fields = {field.name: field for field in attrs.fields(record.cls)}
    rows = "".join(
        f"| `{field}` | {_escaped(kind.expected)} | {_default(fields[field].default)} | {fields[field].metadata['doc']} |\n"
        for field, kind in record.kinds.items()
    )
    return f"\n## `[[{long_form}]]`\n\n| setting | value | default | meaning |\n|---|---|---|---|\n{rows}"


def _default(default: Any) -> str:
    if default is attrs.NOTHING:
        return "needed"
    if default in (None, ()):
        return "-"
    words = ", ".join(default) if isinstance(default, tuple) else str(default)
    return f"`{words}`"


def _presets() -> str:
    rows = []
    for name, preset in PRESETS.items():
        addresses = " or ".join(f"`{url}`" for url in (preset.base_url, preset.china_base_url) if url) or "-"
        variable = f"`{preset.key_variable}`" if preset.key_variable else "-"
        classes = (
            ", ".join(each or "-" for each in (preset.fast, preset.balanced, preset.strong)) if preset.fast else "-"
        )
        rows.append(f"| `{name}` | {addresses} | {variable} | {preset.model} | {classes} |\n")
    return f"\n## Known providers\n{_PROVIDERS_PREFACE}{''.join(rows)}{_AFTER_PROVIDERS}"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(render())
