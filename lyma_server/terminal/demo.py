"""`lyma demo`: the tour. Every step is a real command on a throwaway home, with providers that are scripted."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from argparse import Namespace, RawDescriptionHelpFormatter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attrs import frozen

from lyma_server.errors import LymaError
from lyma_server.terminal import demo_script
from lyma_server.terminal.plain import plain
from lyma_server.terminal.scripted import ScriptedProvider

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lyma_server.terminal.commands import Subparsers

CANCELLED: Final = 130
REFUSED: Final = 1
NOT_APPROVED: Final = 3

DESCRIPTION = """\
A tour of about a minute: keys that rotate, a provider that is followed by the next, commands that are refused, and an agent
that is drafted, compiled, approved by you and run in its sandbox. It needs no key and costs nothing: the providers are scripted,
on this machine, in a home that is thrown away. The commands are real; each is shown before it runs.
"""


@frozen
class Step:
    """What a step shows, the command, and the exit codes that belong to it. `{agent}` in the command is the compiled agent's hash."""

    about: str
    command: tuple[str, ...]
    ends: frozenset[int] = frozenset({0})


STEPS: Final = (
    Step("The first key is rate-limited: the second answers.", ("ask", "what does greet.py do?")),
    Step("A provider is down: the next one takes over, and says so.", ("ask", "--prefer", "down", "and who calls it?")),
    Step(
        "A forbidden command is read before it runs, whatever it looks like.",
        ("exec", "a=r; b=m; $a$b -rf ~"),
        frozenset({REFUSED}),
    ),
    Step(
        "One that no text shows is refused when it is executed: here a program reads the words from a file.",
        ("exec", demo_script.UNSEEN),
        frozenset({0, REFUSED}),
    ),
    Step(
        "And what runs is confined: Lyma's own folder looks empty from inside.", ("exec", 'ls -A "$HOME/.lyma" | wc -l')
    ),
    Step(
        "An agent is drafted by a model. It grants nothing.", ("draft-agent", "list what is left to do in this project")
    ),
    Step("It is compiled to one hash.", ("compile-agent", f".lyma/agents/{demo_script.AGENT}")),
    Step(
        "It does not run before a person has read it and approved exactly these bytes. With nobody here it is refused.",
        ("approve", "{agent}"),
        frozenset({0, NOT_APPROVED}),
    ),
    Step(
        "Approved, it runs in its sandbox, within its budget. Without that it is refused again.",
        ("run-compiled-agent", "{agent}", "--input", '"everything"'),
        frozenset({0, NOT_APPROVED}),
    ),
)


def add_parser(subparsers: Subparsers) -> None:
    """`lyma demo`."""
    subparsers.add_parser("demo", description=DESCRIPTION, formatter_class=RawDescriptionHelpFormatter)


def run(_args: Namespace) -> int:
    """Take the tour and return the exit code. Raises LymaError where a step ends as it should not."""
    with (
        tempfile.TemporaryDirectory(prefix="lyma-demo-") as folder,
        ScriptedProvider(demo_script.answer, Path(folder, "provider.sock")) as provider,
        _surroundings(Path(folder), provider.base_url),
    ):
        for number, step in enumerate(STEPS, 1):
            code = _take(number, step)
            if code == CANCELLED:
                return CANCELLED
            if code == NOT_APPROVED and sys.stdin.isatty():  # to run it now would only ask the same person again
                sys.stdout.write("\nYou did not approve it, so it does not run.\n")
                break
    sys.stdout.write("\nThat was the tour; its home is gone again. Begin with `lyma setup`.\n")
    return 0


def _take(number: int, step: Step) -> int:
    words = [_agent() if word == "{agent}" else word for word in step.command]
    sys.stdout.write(f"\n[{number}/{len(STEPS)}] {step.about}\n$ lyma {shlex.join(words)}\n")
    sys.stdout.flush()
    code = _run(words)
    if code not in (*step.ends, CANCELLED):
        raise LymaError(f"Step {number} of the tour ended with {code}; `lyma doctor` says what is missing here.")
    return code


def _run(words: list[str]) -> int:
    """One command, as if it had been typed."""
    from lyma_server.terminal.main import run_command

    try:
        return run_command(words, Namespace())
    except LymaError as error:
        sys.stdout.flush()
        sys.stderr.write(f"lyma: {plain(error.message)}\n")
        return error.exit_code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _agent() -> str:
    """The hash of the agent that was compiled last; there is one."""
    from lyma_server.terminal.agents import open_factory, own_workspace

    rows = open_factory().rows(own_workspace())
    return rows[0].hash if rows else demo_script.AGENT


@contextmanager
def _surroundings(folder: Path, base_url: str) -> Iterator[None]:
    """A home, a project and settings of their own, for this process and what it starts."""
    home, project = folder / "home", folder / "home/project"
    project.mkdir(parents=True)
    for name, text in demo_script.FILES.items():
        (project / name).write_text(text, encoding="utf-8")
    before, variables = Path.cwd(), demo_script.variables(home, base_url)
    kept = dict(os.environ)
    os.environ.clear()
    os.environ.update(_without_ours(kept) | variables)
    os.chdir(project)
    try:
        yield
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ.update(kept)


def _without_ours(environ: Mapping[str, str]) -> dict[str, str]:
    """No setting and no key of the user's takes part."""
    from lyma_server.config.presets import PRESETS

    keys = {preset.key_variable for preset in PRESETS.values() if preset.key_variable}
    return {
        name: value
        for name, value in environ.items()
        if not name.startswith("LYMA_") and not any(name == key or name.startswith(f"{key}_") for key in keys)
    }
