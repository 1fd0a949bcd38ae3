"""Drafts an agent: one call of a model, or a template. A draft is a file in the workspace and grants nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve, frozen

from lyma_server.config.mistakes import Mistake
from lyma_server.errors import SpecInvalid, UsageError
from lyma_server.factory.compile import Source, examine
from lyma_server.factory.diagnostic import SPEC_FILE, as_json, of_mistakes, refuse
from lyma_server.factory.folder import Folder, Unfit
from lyma_server.factory.spec import NAME, named_files
from lyma_server.factory.spec_text import limits, read_document, spec_of
from lyma_server.factory.template import template, usual_limits, written
from lyma_server.factory.versions import BUILTIN_TOOLS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path
    from typing import TypeAlias

    from lyma_server.config.model import CeilingSettings
    from lyma_server.factory.spec import Spec

    AskModel: TypeAlias = Callable[[str, str], Awaitable[str]]
    """Given instructions and a prompt, what one call of a model answers."""

_FENCED: Final = re.compile(r"^[ \t]*```[^\n]*\n(.*?)^[ \t]*```[ \t]*$", re.DOTALL | re.MULTILINE)
_MOST_TRIES: Final = 100

_INSTRUCTIONS: Final = """\
You write the specification of a small agent, a file named agent.toml. Answer with that file in one ```toml block and
nothing else. Keep this shape; leave out no setting of it and add none:

```toml
{example}```

- name: small letters, digits and hyphens, at most 48.
- purpose: one line, at most 280 bytes. instructions: what the agent has to do, in full sentences; it sees nothing else.
- tools.allow: any of {tools}; only what it needs. tools.python stays empty.
- files.read and files.write: globs relative to the project, such as "src/**" or "docs/*.md"; no absolute paths, no hidden
  files. files.write stays empty unless it must change files.
- Limits are whole numbers; none may be larger than: {ceiling}.
- output.schema stays "".
"""


@frozen
class Draft:
    """What was written: the path of the file, its text, and in sentences what was changed in the model's answer."""

    path: Path
    text: str
    notes: tuple[str, ...] = ()


async def draft_agent(
    task: str, ask_model: AskModel, ceiling: CeilingSettings, workspace: Path, name: str | None = None
) -> Draft:
    """Ask a model for an agent that does `task`, and write it to `.lyma/agents/<name>/agent.toml`. Raises as `compose`."""
    draft = await compose(task, ask_model, ceiling, workspace, name)
    write_draft(workspace, draft.path.parent.name, draft.text)
    return draft


async def compose(
    task: str, ask_model: AskModel, ceiling: CeilingSettings, workspace: Path, name: str | None = None
) -> Draft:
    """Ask a model for an agent that does `task`; where it would be written, and what. Nothing is written yet.

    Raises SpecInvalid where the answer is no sound agent (its data holds the diagnostics), UsageError where there is an
    agent named `name` already, and what `ask_model` raises.
    """
    check_wish(task, workspace, name)
    answer = await ask_model(instructions(ceiling), task)
    return drafted(read_answer(answer, ceiling, name), ceiling, workspace, name)


def check_wish(task: str, workspace: Path, name: str | None) -> None:
    """Raise UsageError where there is nothing to draft, or an agent named `name` already."""
    if not task.strip():
        raise UsageError("There is nothing to draft: say what the agent should do.")
    if name is not None:
        _refuse_name(name)
        _refuse_existing(workspace, name)


def drafted(read: tuple[Spec, tuple[str, ...]], ceiling: CeilingSettings, workspace: Path, name: str | None) -> Draft:
    """What becomes of a specification that was read from a draft, with notes on it. `name` is the one that was asked for; else a free one is taken.

    Raises SpecInvalid. That files which it names are not there yet is no fault here.
    """
    spec, notes = read
    wanted = spec.name if name is not None else _free_name(workspace, spec.name)
    text = written(evolve(spec, name=wanted))
    found = examine(Source(text.encode()), ceiling).diagnostics
    refuse(each for each in found if each.code != "missing_file")
    return Draft(_path(workspace, wanted), text, notes)


def draft_from_template(name: str, ceiling: CeilingSettings, workspace: Path) -> Draft:
    """Write a commented agent.toml that compiles as it is. Raises UsageError where there is such an agent already."""
    _refuse_name(name)
    _refuse_existing(workspace, name)
    text = template(name, ceiling)
    return Draft(write_draft(workspace, name, text), text)


def instructions(ceiling: CeilingSettings) -> str:
    """What the model is told."""
    most = ", ".join(f"{path[-1]} {getattr(ceiling, each)}" for path, each, _ in limits())
    return _INSTRUCTIONS.format(example=template("example", ceiling), tools=", ".join(BUILTIN_TOOLS), ceiling=most)


def read_answer(
    answer: str, ceiling: CeilingSettings, name: str | None = None, *, with_files: bool = False
) -> tuple[Spec, tuple[str, ...]]:
    """The specification in a model's answer, its limits clamped to the ceiling, and what was changed, in sentences. With
    `with_files` it may name files that somebody will write.

    Raises SpecInvalid, whose message offers the template.
    """
    fenced = _FENCED.search(answer)
    text = fenced[1] if fenced else answer
    mistakes: list[Mistake] = []
    document = read_document(text.encode("utf-8", "replace"), mistakes)
    if document is None:
        raise _invalid(mistakes, text)
    if name is not None:
        document["name"] = name
    notes = _clamp(document, ceiling)
    spec = spec_of(document, ceiling, mistakes)
    if spec is None:
        raise _invalid(mistakes, text)
    if named_files(spec) and not with_files:
        hint = "leave tools.python and output.schema empty"
        raise _invalid([Mistake(("tools",), "names files that are not there", hint, code="missing_file")], text)
    return spec, notes


def write_draft(workspace: Path, name: str, text: str) -> Path:
    """Write a new `.lyma/agents/<name>/agent.toml`, through no link. Raises UsageError where it cannot be."""
    path = _path(workspace, name)
    try:
        with (
            Folder.open(workspace) as root,
            root.inside(".lyma", make=0o755) as own,
            own.inside("agents", make=0o755) as agents,
            agents.inside(name, make=0o755) as folder,
        ):
            folder.write_new(SPEC_FILE, text.encode(), 0o644)
    except Unfit as error:
        raise UsageError(
            f"{path} cannot be written: something on its way {error.problem}; nothing was changed."
        ) from error
    return path


def _clamp(document: dict[str, Any], ceiling: CeilingSettings) -> tuple[str, ...]:
    """Lower limits to the ceiling and add those that are missing; what is no number at all is left to be refused."""
    notes = []
    usual = usual_limits(ceiling)
    for (section, setting), name, _ in limits():
        table = document.setdefault(section, {})
        most = getattr(ceiling, name)
        value = table.get(setting) if isinstance(table, dict) else 0
        if value is None:
            table[setting] = usual[section, setting]
            notes.append(f"{section}.{setting} was missing and is {table[setting]} now.")
        elif type(value) is int and value > most:
            table[setting] = most
            notes.append(f"{section}.{setting} was lowered from {value} to the ceiling of {most}.")
    document.setdefault("lyma_agent", 1)
    return tuple(notes)


def _invalid(mistakes: list[Mistake], text: str) -> SpecInvalid:
    diagnostics = of_mistakes(mistakes, text)
    return SpecInvalid(
        f"The model's draft is no sound agent: {diagnostics[0].message.rstrip('.')}; try again, or begin with "
        "`lyma draft-agent --from-template NAME`.",
        diagnostics=[as_json(each) for each in diagnostics],
    )


def _refuse_name(name: str) -> None:
    if not re.fullmatch(NAME, name):
        raise UsageError(
            f"{name[:60]!r} is no name for an agent; use small letters, digits and -, such as todo-triage."
        )


def _refuse_existing(workspace: Path, name: str) -> None:
    if _path(workspace, name).exists():
        raise UsageError(f"{_path(workspace, name)} is there already; edit it, or choose another name.")


def _free_name(workspace: Path, name: str) -> str:
    """`name`, or with a number where there is such an agent already."""
    for number in range(1, _MOST_TRIES):
        suffix = f"-{number}" if number > 1 else ""
        candidate = name[: 48 - len(suffix)] + suffix
        if not _path(workspace, candidate).exists():
            return candidate
    raise UsageError(f"There are {_MOST_TRIES} agents named {name} already; remove some.")


def _path(workspace: Path, name: str) -> Path:
    return workspace / ".lyma" / "agents" / name / SPEC_FILE
