"""Unwrapping: the commands and program texts inside the arguments of another program."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from lyma_server.executor import containers, recipes, searching
from lyma_server.executor.languages import read_program
from lyma_server.executor.marks import deactivate
from lyma_server.executor.options import Options, read_options
from lyma_server.executor.tools import is_shell, language_of
from lyma_server.executor.world import Outcome, World, join
from lyma_server.executor.wrapper_tables import SINGLE_DASH, SUBCOMMANDS, TEXT_OPTIONS, TEXT_VALUES, WRAPPERS, Wrapper

if TYPE_CHECKING:
    from lyma_server.executor.evaluation import Machine

Runner: TypeAlias = Callable[["Machine", World, tuple[str, ...]], Outcome | None]


def unwrap(machine: Machine, world: World, name: str, argv: tuple[str, ...]) -> Outcome | None:
    """Follow what `argv` starts; None where it starts nothing that is known."""
    if name.startswith(("ld-linux", "ld-musl")):
        name = "ld.so"
    found = _run_texts(machine, world, name, argv)
    runner = _RUNNERS.get(name)
    if runner is not None:
        result = runner(machine, world, argv)
        return result if result is not None else found
    wrapper, arguments = WRAPPERS.get(name), argv[1:]
    if name in SUBCOMMANDS:
        wrapper, arguments = _subcommand(name, arguments)
    if wrapper is None:
        return found
    inner = inner_command(wrapper, arguments, machine, world)
    return _execute(machine, world, inner) if inner else found


def _subcommand(name: str, arguments: tuple[str, ...]) -> tuple[Wrapper | None, tuple[str, ...]]:
    for position, word in enumerate(arguments):
        if word in SUBCOMMANDS[name]:
            return SUBCOMMANDS[name][word], arguments[position + 1 :]
        if not word.startswith("-"):
            break
    return WRAPPERS.get(name), arguments


def inner_command(
    wrapper: Wrapper, arguments: tuple[str, ...], machine: Machine | None = None, world: World | None = None
) -> tuple[str, ...]:
    """The command inside the arguments of a wrapper; its assignments take effect in `world`."""
    if wrapper.marker:
        return arguments[arguments.index("--") + 1 :] if "--" in arguments else ()
    options = read_options(arguments, wrapper.values, permute=False)
    rest = list(options.operands)
    while wrapper.assigns and rest and _is_assignment(rest[0]):
        name, _, value = rest.pop(0).partition("=")
        if machine is not None and world is not None:
            world.set(name, (value,))
            machine.note_environment(world, [name])
    return tuple(rest[wrapper.skip :])


def _is_assignment(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and name.isidentifier()


def _execute(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome:
    from lyma_server.executor.calls import execute

    if argv[:1] == ("--",):
        argv = argv[1:]
    return execute(machine, world.fork(), argv, plain=True) if argv else Outcome()


def _run_texts(machine: Machine, world: World, name: str, argv: tuple[str, ...]) -> Outcome | None:
    """Program texts in the options of `argv`."""
    rows = TEXT_OPTIONS.get(name, ())
    if not rows:
        return None
    valued = [option for row in rows for option in row.options if option.startswith("-")]
    options = read_options(
        argv[1:],
        (*valued, *TEXT_VALUES.get(name, ())),
        single_dash=name in SINGLE_DASH,
        permute=name != "ssh" and not any("*" in row.options for row in rows),
    )
    outputs: list[Outcome] = []
    for row in rows:
        for value in _values(row.options, options):
            text = row.text(deactivate(value))
            if text:
                outputs.append(machine.run_loose(world, text))
    return outputs[-1] if outputs else None


def _values(names: tuple[str, ...], options: Options) -> tuple[str, ...]:
    values = options.all_values(*names)
    if "" in names:
        values += options.operands
    return values + ((" ".join(options.operands),) if "*" in names and options.operands else ())


def _env(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome | None:
    options = read_options(argv[1:], ("-u", "-C", "-S", "--unset", "--chdir", "--split-string", "-P"), permute=False)
    inner = world.fork()
    if folder := options.value("-C", "--chdir"):
        inner.cwd = (world.locate(folder),)
    if text := options.value("-S", "--split-string"):
        return machine.run_shell(inner, " ".join((text, *options.operands)))
    for name in options.all_values("-u", "--unset"):
        inner.variables.pop(name, None)
    rest = inner_command(Wrapper(assigns=True), options.operands, machine, inner)
    return _execute(machine, inner, rest) if rest else None


def _sudo(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome | None:
    inner = world.fork()
    rest = inner_command(WRAPPERS["sudo"], argv[1:], machine, inner)
    if folder := read_options(argv[1:], WRAPPERS["sudo"].values, permute=False).value("-D", "--chdir"):
        inner.cwd = (world.locate(folder),)
    if rest:
        return _execute(machine, inner, rest)
    wants_shell = any(word in ("-s", "-i", "--shell", "--login") for word in argv[1:])
    return _execute(machine, world, ("sh",)) if wants_shell else None


def _su(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome | None:
    """`runuser -u name -- command`; `su` alone reads commands from stdin."""
    if "--" in argv and argv[0].endswith("runuser"):
        return _execute(machine, world, argv[argv.index("--") + 1 :])
    return _execute(machine, world, ("sh",)) if not any(word.startswith("-c") for word in argv[1:]) else None


def _ssh(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome | None:
    options = read_options(argv[1:], (*TEXT_VALUES["ssh"], "-o"), permute=False)
    remote = world.fork()
    remote.cwd = (world.places.home,)
    text = " ".join(options.operands[1:])
    if text:
        machine.run_shell(remote, text)
    elif options.operands:
        for stdin in world.stdin:
            machine.run_shell(remote, stdin)
    return None


def _busybox(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome | None:
    rest = argv[1:]
    while rest and rest[0].startswith("--"):
        rest = (rest[0].partition("=")[2], *rest[1:]) if rest[0].startswith("--coreutils-prog") else rest[1:]
    return _execute(machine, world, rest) if rest else None


def _loader(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome | None:
    options = read_options(
        argv[1:], ("--library-path", "--preload", "--audit", "--argv0", "--inhibit-rpath"), permute=False
    )
    return _execute(machine, world, options.operands) if options.operands else None


def _git(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome | None:
    """Commands inside git: `bisect run`, `submodule foreach`, and settings that hold one."""
    words = [word for word in argv[1:] if not word.startswith("-")]
    for verb, follower in (("bisect", "run"), ("submodule", "foreach")):
        if verb in words and follower in argv:
            rest = tuple(word for word in argv[argv.index(follower) + 1 :] if word != "--recursive")
            if verb == "submodule" or len(rest) == 1:
                return machine.run_shell(world, " ".join(rest))
            return _execute(machine, world, rest)
    if "config" in words:
        place = argv.index("config")
        named = [word for word in argv[place + 1 :] if not word.startswith("-") and word not in ("set", "add")]
        if len(named) > 1:
            _run_texts(machine, world, "git", ("git", "-c", f"{named[0]}={named[1]}"))
    return None


def _capsh(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome | None:
    return _execute(machine, world, ("sh", *argv[argv.index("--") + 1 :])) if "--" in argv else None


def _screen(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome | None:
    """`screen -dmS name command`, `tmux new -d command words`."""
    for position, word in enumerate(argv[1:], start=1):
        if is_shell(posixpath.basename(word)) or language_of(posixpath.basename(word)):
            return _execute(machine, world, argv[position:])
    return None


def _nix(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome | None:
    for marker in ("-c", "--command", "--"):
        if marker in argv:
            return _execute(machine, world, argv[argv.index(marker) + 1 :])
    return None


def _schedule(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome | None:
    """`at`, `batch`: program text on stdin or in the file of `-f`."""
    options = read_options(argv[1:], ("-f", "-q", "-t"))
    file = options.value("-f")
    texts = world.read(file) if file else world.stdin
    for text in texts or ():
        machine.run_shell(world, text)
    return None


def _tee(_machine: Machine, world: World, _argv: tuple[str, ...]) -> Outcome:
    return Outcome(join((world.stdin,)))


def _stdin_commands(machine: Machine, world: World, _argv: tuple[str, ...]) -> Outcome | None:
    """Editors and clients whose script on stdin may start a shell with `!`."""
    for text in world.stdin:
        for line in text.splitlines():
            stripped = line.lstrip(": \t0123456789,$%")
            if stripped.startswith(("!", "\\!", ".shell ", ".system ")):
                machine.run_shell(world, stripped.lstrip("\\!").removeprefix(".shell").removeprefix(".system"))
    return None


_VI_NAMES = ("vim", "vi", "nvim", "view", "vimdiff", "gvim", "ex", "rvim", "rview", "vimx")


def _editor(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome | None:
    """Commands of vi and its like, in options and on stdin, which may call out in their own language."""
    options = read_options(argv[1:], ("-c", "--cmd", "-s", "-u"))
    texts = (*options.all_values("-c", "--cmd"), *(word[1:] for word in options.operands if word.startswith("+")))
    for text in texts:
        read_program(machine, world, "vim", text, argv)
    return _stdin_commands(machine, world, argv)


def _daemon(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome | None:
    """`start-stop-daemon -x program -- arguments`."""
    options = read_options(argv[1:], ("-x", "--exec", "-a", "--startas", "-p", "-u", "-n", "-c", "-d"))
    program = options.value("-a", "--startas") or options.value("-x", "--exec")
    return _execute(machine, world, (program, *options.operands)) if program else None


def _uv(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome | None:
    """`uv run -` and `uv run script.py` start Python; anything else after `run` is a command."""
    wrapper, arguments = _subcommand("uv", argv[1:])
    inner = inner_command(wrapper, arguments) if wrapper else ()
    if inner and (inner[0] == "-" or inner[0].endswith(".py")):
        return _execute(machine, world, ("python3", *inner))
    return _execute(machine, world, inner) if inner else None


def _compiler(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome | None:
    """`gcc -wrapper program,arguments`."""
    for flag, value in pairwise(argv):
        if flag == "-wrapper":
            return _execute(machine, world, tuple(value.split(",")))
    return None


_RUNNERS: dict[str, Runner] = {
    **dict.fromkeys(_VI_NAMES, _editor), **dict.fromkeys(("gcc", "g++", "cc", "c++"), _compiler), "start-stop-daemon": _daemon,
    "env": _env, "sudo": _sudo, "su": _su, "runuser": _su, "ssh": _ssh, "busybox": _busybox, "toybox": _busybox,
    "coreutils": _busybox, "ld.so": _loader, "git": _git, "capsh": _capsh, "screen": _screen, "tmux": _screen, "nix": _nix,
    "at": _schedule, "batch": _schedule, "tee": _tee, "ed": _stdin_commands, "sqlite3": _stdin_commands,
    "psql": _stdin_commands, "mysql": _stdin_commands, "dc": _stdin_commands, "ftp": _stdin_commands,
    "find": searching.find, "fd": searching.fd, "fdfind": searching.fd, "xargs": searching.xargs, "parallel": searching.parallel,
    "docker": containers.run, "podman": containers.run, "nerdctl": containers.run, "docker-compose": containers.run,
    "kubectl": containers.kubectl, "crontab": recipes.crontab, "make": recipes.make, "gmake": recipes.make, "npm": recipes.npm,
    "pnpm": recipes.npm, "yarn": recipes.npm, "bun": recipes.npm, "awk": recipes.awk, "gawk": recipes.awk, "mawk": recipes.awk,
    "nawk": recipes.awk, "sed": recipes.sed, "gsed": recipes.sed, "expect": recipes.expect, "m4": recipes.m4, "uv": _uv,
}  # fmt: skip
