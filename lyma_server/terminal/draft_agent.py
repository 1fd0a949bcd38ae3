"""`lyma draft-agent`: a first agent.toml, by a model or from a template."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING

from lyma_server.errors import UsageError
from lyma_server.terminal.agents import open_factory, own_workspace
from lyma_server.terminal.plain import plain_line

if TYPE_CHECKING:
    from argparse import Namespace
    from pathlib import Path

    from lyma_server.factory.draft import Draft
    from lyma_server.terminal.commands import Subparsers


def add_parser(subparsers: Subparsers) -> None:
    """`lyma draft-agent TASK… [--name NAME] | --from-template NAME`."""
    parser = subparsers.add_parser(
        "draft-agent",
        description="Write the first version of an agent into .lyma/agents of this folder. It may do nothing until it is "
        "compiled and you approve it.",
        epilog='Examples: lyma draft-agent "summarise the commits since the last tag"; lyma draft-agent --from-template todo-triage.',
    )
    parser.add_argument("task", metavar="TASK", nargs="*", help="what the agent should do; a model drafts it")
    parser.add_argument(
        "--from-template", metavar="NAME", help="write a commented agent.toml for an agent called NAME, without a model"
    )
    parser.add_argument(
        "--name", metavar="NAME", help="what to call the agent that a model drafts; the model chooses if left out"
    )
    parser.add_argument("--provider", metavar="NAME", help="ask this provider and no other")


def run(args: Namespace) -> int:
    """Write it and say where it is."""
    if bool(args.task) == (args.from_template is not None):
        raise UsageError("Say what the agent should do, or use --from-template NAME; one of the two.")
    if args.from_template is not None and args.name is not None:
        raise UsageError("--from-template NAME names the agent already; leave --name out.")
    workspace = own_workspace()
    named = args.from_template
    draft = _from_template(named, workspace) if named is not None else asyncio.run(_by_model(args, workspace))
    for note in draft.notes:
        sys.stderr.write(f"{plain_line(note)}\n")
    sys.stdout.write(f"{draft.path}\n")
    if sys.stderr.isatty():
        sys.stderr.write(f"Look it over, then: lyma compile-agent {draft.path.parent.name}\n")
    return 0


def _from_template(name: str, workspace: Path) -> Draft:
    from lyma_server.factory.draft import draft_from_template

    return draft_from_template(name, open_factory().ceiling, workspace)


async def _by_model(args: Namespace, workspace: Path) -> Draft:
    from lyma_server.agent.aside import Aside, ask_once
    from lyma_server.compose import build_core
    from lyma_server.factory.draft import draft_agent, write_draft

    core = build_core(os.environ)
    try:

        async def ask_model(instructions: str, prompt: str) -> str:
            aside = Aside(instructions, prompt, provider=args.provider, folder=str(workspace))
            return (await ask_once(core.router, aside, lambda _attempt: None))[0]

        if core.external is not None:
            draft = await core.external.compose(" ".join(args.task), workspace, lambda _event: None, args.name)
            write_draft(workspace, draft.path.parent.name, draft.text)
            return draft
        return await draft_agent(" ".join(args.task), ask_model, core.factory.ceiling, workspace, args.name)
    finally:
        await core.close()
