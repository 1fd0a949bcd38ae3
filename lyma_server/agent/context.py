"""Gathers what is sent along with a prompt: files that it names, what the editor shows, the project's instructions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from attrs import define, field, frozen

from lyma_server.agent.bounds import Bounds, readable_file, relative
from lyma_server.agent.instructions import instructions, project_instructions
from lyma_server.agent.lines import split_lines
from lyma_server.agent.mentions import Mention, mentions
from lyma_server.agent.ports import FileMissing
from lyma_server.agent.repository import repository_state
from lyma_server.errors import ToolError, UsageError
from lyma_server.protocol.events import SentPart
from lyma_server.protocol.messages import FileBlock, TextBlock
from lyma_server.router.chat import Message, Text

if TYPE_CHECKING:
    from pathlib import Path

    from lyma_server.agent.ports import Workspace
    from lyma_server.protocol.messages import AskContext, AskParams, Diagnostic, Range

LARGEST_FILE = 262_144
"""Characters of one file that is sent along; more must be asked for by lines."""
LARGEST_INSTRUCTIONS = 32_768
"""Characters of the project's instructions; the rest is left out."""
MOST_DIAGNOSTICS = 50
MOST_DOCUMENTS = 20
SEVERITIES = {1: "error", 2: "warning", 3: "information", 4: "hint"}


@frozen
class Context:
    """`message` is what the model gets from the user, `sent` its list for the person, `notices` what did not go well."""

    instructions: str
    message: Message
    sent: tuple[SentPart, ...]
    notices: tuple[str, ...]


@define
class Gathering:
    """The parts so far, in the order in which the model reads them."""

    workspace: Workspace
    bounds: Bounds
    texts: list[Text] = field(factory=list)
    sent: list[SentPart] = field(factory=list)
    notices: list[str] = field(factory=list)

    def add(self, what: str, text: str, path: Path | None = None) -> None:
        self.texts.append(Text(text))
        self.note(what, text, path)

    def note(self, what: str, text: str, path: Path | None = None) -> None:
        uri = None if path is None else self.workspace.uri(path)
        self.sent.append(SentPart(what=what, characters=len(text), uri=uri))


def prompt_text(prompt: object) -> str:
    """The words of a prompt without its files."""
    if isinstance(prompt, str):
        return prompt
    blocks = prompt if isinstance(prompt, tuple) else ()
    return "\n\n".join(block.text for block in blocks if isinstance(block, TextBlock))


async def gather(
    params: AskParams, workspace: Workspace, bounds: Bounds, names: tuple[str, ...] | None, *, has_tools: bool
) -> Context:
    """All of it. `names` are the files of instructions to look for, of which the first that exists is sent; null says that
    the root is no project, and then no repository is looked for either.

    Only in a prompt that is one string does `@path` name a file: blocks may hold what others wrote, a diff for example.

    Raises UsageError where a file that was asked for cannot be sent.
    """
    gathering = Gathering(workspace, bounds)
    state = asyncio.ensure_future(repository_state(bounds.root)) if names is not None else None
    try:
        project = await _project(gathering, names or ())
        await _gather(gathering, params, state)
    finally:
        if state is not None:
            state.cancel()
    return Context(
        instructions(bounds.root if has_tools else None, project),
        Message("user", tuple(gathering.texts)),
        tuple(gathering.sent),
        tuple(gathering.notices),
    )


async def _gather(gathering: Gathering, params: AskParams, state: asyncio.Future[str] | None) -> None:
    """What is named, what is shown, how the repository stands, and the prompt last."""
    for block in params.prompt if isinstance(params.prompt, tuple) else ():
        if isinstance(block, FileBlock):
            await _add_file_block(gathering, block)
    prompt = prompt_text(params.prompt)
    for mention in mentions(prompt) if isinstance(params.prompt, str) else ():
        await _add_mention(gathering, mention)
    if params.context is not None:
        await _add_editor(gathering, params.context)
    if state is not None and (told := await state):
        gathering.add("git", f"<git>\n{told}\n</git>")
    if prompt or not gathering.texts:
        gathering.add("prompt", prompt)


async def _project(gathering: Gathering, names: tuple[str, ...]) -> str:
    for name in names:
        try:
            path = readable_file(name, gathering.bounds)
            text = (await gathering.workspace.read(path)).text
        except FileMissing:
            continue
        except ToolError as error:
            gathering.notices.append(f"The instructions in {name} were left out: {error.message}")
            continue
        if len(text) > LARGEST_INSTRUCTIONS:
            gathering.notices.append(f"{name} is long; its first {LARGEST_INSTRUCTIONS} characters are sent.")
        text = text[:LARGEST_INSTRUCTIONS]
        gathering.note("instructions", text, path)
        return project_instructions(name, text)
    return ""


async def _add_file_block(gathering: Gathering, block: FileBlock) -> None:
    path = gathering.workspace.path(block.uri)
    try:
        await _add_file(gathering, Mention(str(path), block.first_line, block.last_line))
    except ToolError as error:
        raise UsageError(error.message) from error


async def _add_mention(gathering: Gathering, mention: Mention) -> None:
    try:
        await _add_file(gathering, mention)
    except FileMissing:
        if mention.looks_like_a_file:
            gathering.notices.append(f"There is no file {mention.path}, so only its name was sent.")
    except ToolError as error:
        if mention.looks_like_a_file:
            gathering.notices.append(f"{error.message.removesuffix('.')} (@{mention.path}).")


async def _add_file(gathering: Gathering, mention: Mention) -> None:
    path = readable_file(mention.path, gathering.bounds)
    lines = split_lines((await gathering.workspace.read(path)).text)
    first, last = mention.first_line or 1, min(mention.last_line or len(lines), len(lines))
    if lines and first > last:
        raise ToolError(f"{mention.path} has {len(lines)} lines; there are none from {first} to {mention.last_line}.")
    text = "".join(lines[first - 1 : last])
    if len(text) > LARGEST_FILE:
        raise ToolError(
            f"{mention.path} has {len(text)} characters, at most {LARGEST_FILE} are sent; name lines, as {mention.path}:1-200."
        )
    gathering.add("file", _tagged("file", _name(gathering, path), first, last, text), path)


async def _add_editor(gathering: Gathering, context: AskContext) -> None:
    """What the editor shows; a document that is no file (a terminal, a new buffer without a name) is left out."""
    active = _path(gathering, context.active.uri) if context.active else None
    for selection in context.active.selections if context.active else ():
        await _add_selection(gathering, active, selection)
    if diagnostics := [_diagnostic(gathering, each) for each in context.diagnostics[:MOST_DIAGNOSTICS]]:
        gathering.add("diagnostics", "<diagnostics>\n" + "\n".join(diagnostics) + "\n</diagnostics>")
    shown = [f"Active document: {_name(gathering, active)}{_cursor(context)}"] if active else []
    others = [
        path for each in context.documents[:MOST_DOCUMENTS] if (path := _path(gathering, each.uri)) and path != active
    ]
    if others:
        shown.append("Open documents: " + ", ".join(_name(gathering, path) for path in others))
    if shown:
        gathering.add("editor", "<editor>\n" + "\n".join(shown) + "\n</editor>")


async def _add_selection(gathering: Gathering, path: Path | None, selection: Range) -> None:
    """Whole lines: they mean the same in every encoding of positions."""
    start, end = selection.start, selection.end
    if path is None or start == end:
        return
    first, last = start.line + 1, end.line + (end.character > 0 or end.line == start.line)
    try:
        lines = split_lines((await gathering.workspace.read(path)).text)[first - 1 : last]
    except ToolError as error:
        gathering.notices.append(f"The selection was left out: {error.message}")
        return
    text, last = "".join(lines)[:LARGEST_FILE], min(last, first + len(lines) - 1)
    gathering.add("selection", _tagged("selection", _name(gathering, path), first, last, text), path)


def _cursor(context: AskContext) -> str:
    places = [selection.start.line + 1 for selection in context.active.selections] if context.active else []
    return f", cursor at line {places[0]}" if places else ""


def _diagnostic(gathering: Gathering, each: Diagnostic) -> str:
    path = _path(gathering, each.uri)
    name = each.uri if path is None else _name(gathering, path)
    source = f" ({each.source})" if each.source else ""
    return f"{name}:{each.range.start.line + 1}: {SEVERITIES.get(each.severity or 1, 'error')}: {each.message}{source}"


def _path(gathering: Gathering, uri: str) -> Path | None:
    """The real path of a document that may be read."""
    try:
        return readable_file(str(gathering.workspace.path(uri)), gathering.bounds)
    except (ToolError, UsageError):
        return None


def _name(gathering: Gathering, path: Path) -> str:
    return relative(path, gathering.bounds.root)


def _tagged(tag: str, name: str, first: int, last: int, text: str) -> str:
    end = "" if text.endswith(("\n", "\r")) or not text else "\n"
    return f'<{tag} path="{name}" lines="{first}-{last}">\n{text}{end}</{tag}>'
