"""The `lyma` command: find the command, run it, and turn every failure into one sentence and an exit code."""

from __future__ import annotations

import argparse
import signal
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from lyma_server.errors import LymaError, UsageError
from lyma_server.terminal.commands import BY_NAME, COMMANDS, Row
from lyma_server.terminal.plain import plain
from lyma_server.terminal.streams import complaint, forget_stderr, forget_stdout, hold_streams

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lyma_server.terminal.commands import Subparsers

CANCELLED = 130
COMES_AGAIN_S = 0.01

OVERVIEW = """\
Lyma is a coding agent. It lives behind your editor (lyma-server) and here in the terminal.

usage: lyma COMMAND [ARGUMENT ...]
       lyma COMMAND --help          explain a command, with examples
       lyma --version

commands:
{commands}

start here:
  lyma setup                        store a key (or set ANTHROPIC_API_KEY, OPENAI_API_KEY, ...)
  lyma ask "what does this project do?"
  lyma ask "explain @src/main.py:10-40"
  git diff | lyma ask "review this" -
  lyma doctor                       when something does not work

exit codes: 0 done, 1 error, 2 wrong usage, 3 approval needed or denied, 4 every provider failed, 130 cancelled
"""


class Parser(argparse.ArgumentParser):
    """Raises instead of printing, so that a wrong usage is one sentence like every other error."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        """Raise UsageError with what argparse found."""
        sentence = message[:1].upper() + message[1:]
        raise UsageError(f"{sentence}. See `{self.prog} --help`.")


def main(argv: Sequence[str], serve: Callable[[Sequence[str]], int]) -> int:
    """Run one command and return its exit code. `serve` is the other face, for `lyma serve`."""
    if argv[:1] != ["serve"]:  # which says so where its pipes are closed
        hold_streams()
    _end_as_on_ctrl_c()
    repeat_lost_ctrl_c()
    try:
        _replace_unencodable()
        code = _run(list(argv), serve)
        sys.stdout.flush()
    except LymaError as error:
        _say(error.message)
        code = error.exit_code
    except KeyboardInterrupt:
        code = CANCELLED
    except BrokenPipeError:
        forget_stdout()
        code = 1
    except Exception as error:  # noqa: BLE001 - the last resort: nobody wants a traceback
        _say(complaint(error) or _told(error))
        code = 1
    return code


def _replace_unencodable() -> None:
    """Write what an output's encoding lacks as escapes. Raises OSError where an output does not take what it holds already."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _told(error: Exception) -> str:
    from lyma_server.terminal.incident import record
    from lyma_server.terminal.mishaps import mishap

    return mishap(error) or record(error)


def _end_as_on_ctrl_c() -> None:
    """Also on SIGTERM and on a terminal that closes, so that nothing is left running. What is ignored stays so."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)


def repeat_lost_ctrl_c() -> None:
    """Python drops a Ctrl-C that comes while it tidies up after an import or an object; let it come again a moment later."""
    usual = sys.unraisablehook

    def heed(lost: sys.UnraisableHookArgs) -> None:
        if issubclass(lost.exc_type, KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, COMES_AGAIN_S)
        else:
            usual(lost)

    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    sys.unraisablehook = heed


def _run(argv: list[str], serve: Callable[[Sequence[str]], int]) -> int:
    if argv[:1] == ["help"] and argv[1:]:
        argv = [argv[1], "--help"]
    if not argv or argv[0] in ("-h", "--help", "help"):
        return _help(asked=bool(argv))
    if argv[0] in ("-V", "--version"):
        from lyma_server import __version__

        sys.stdout.write(f"lyma {__version__}\n")
        return 0
    return run_command(argv, argparse.Namespace(serve=serve))


def run_command(argv: list[str], given: argparse.Namespace) -> int:
    """Run the command that `argv` names and return its exit code. Raises LymaError."""
    command = _find(argv[0]).load()
    parser: argparse.ArgumentParser = Parser(prog="lyma", add_help=False)
    subparsers: Subparsers = parser.add_subparsers(parser_class=Parser)
    command.add_parser(subparsers)
    name = _hyphened(argv[0])
    args, extra = parser.parse_known_args([name, *argv[1:]], given)
    if extra:
        raise UsageError(f"`lyma {name}` does not take {plain(extra[0])} there; see `lyma {name} --help`.")
    return command.run(args)


def _help(*, asked: bool) -> int:
    width = max(len(row.name) for row in COMMANDS)
    rows = "\n".join(f"  {row.name:{width}}  {row.doc}" for row in COMMANDS)
    sys.stdout.write(OVERVIEW.format(commands=rows))
    return 0 if asked else UsageError.exit_code


def _hyphened(name: str) -> str:
    return name.replace("_", "-")


def _find(name: str) -> Row:
    row = BY_NAME.get(_hyphened(name))
    if row is None:
        from difflib import get_close_matches

        near = get_close_matches(name, BY_NAME, n=1, cutoff=0.5)
        hint = f"did you mean `lyma {near[0]}`?" if near else "`lyma --help` lists them."
        raise UsageError(f"There is no command `{plain(name)}`; {hint}")
    return row


def _say(sentence: str) -> None:
    try:
        sys.stdout.flush()
    except OSError:
        forget_stdout()
    try:
        sys.stderr.write(f"lyma: {plain(sentence)}\n")
        sys.stderr.flush()
    except OSError:
        forget_stderr()
