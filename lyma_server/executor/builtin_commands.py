"""The shell's own commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from lyma_server.executor import conditions, external, folding
from lyma_server.executor.marks import ENVIRONMENT, UNKNOWN, is_known
from lyma_server.executor.options import read_options
from lyma_server.executor.paths import normalise
from lyma_server.executor.scripts_on_disk import follow_script
from lyma_server.executor.world import Alternatives, Outcome, World, limit

if TYPE_CHECKING:
    from lyma_server.executor.evaluation import Machine

Builtin: TypeAlias = Callable[["Machine", World, tuple[str, ...]], Outcome]
_DONE = Outcome(assumed=True)


def _colon(_machine: Machine, _world: World, _argv: tuple[str, ...]) -> Outcome:
    return Outcome()


def _change_folder(_machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome:
    """`cd` and `pushd`; `popd` goes back as `cd -` does."""
    operands = [word for word in argv[1:] if word == "-" or not word.startswith("-")]
    old = world.cwd
    if argv[0] == "popd" or operands[:1] == ["-"]:
        targets: Alternatives = world.old_cwd
    elif not operands or operands[0] == "":
        targets = world.home() if argv[0] == "cd" else world.old_cwd
    else:
        targets = _folders(world, operands[0])
    world.cwd, world.old_cwd = limit(targets) or old, old
    return Outcome(limit(f"{place}\n" for place in world.cwd), assumed=True) if operands[:1] == ["-"] else _DONE


def _folders(world: World, operand: str) -> Alternatives:
    """Where `cd operand` leads; an unknown operand that may be empty may lead home."""
    bases = world.cwd
    search = [path for paths in world.get("CDPATH") or () for path in paths.split(":") if path]
    if search and not operand.startswith(("/", ".")):
        bases = (*bases, *search)
    found = [normalise(operand, base) for base in bases]
    if not is_known(operand) and set(operand) <= {UNKNOWN}:
        found += world.home()
    return tuple(found)


def _export(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome:
    for word in argv[1:]:
        name, equals, value = word.partition("=")
        if equals and name.isidentifier():
            world.set(name, (value,))
            machine.note_environment(world, [name])
    return declare(machine, world, argv)


def declare(_machine: Machine, _world: World, argv: tuple[str, ...]) -> Outcome:
    """What the listing forms print; assignments were made before."""
    listing = len(argv) == 1 or argv[1:] in (("-p",), ("-x",), ("-px",), ("-xp",))
    return Outcome((ENVIRONMENT,), assumed=True) if listing else _DONE


def _unset(_machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome:
    for name in argv[1:]:
        world.variables.pop(name, None)
        world.arrays.pop(name, None)
        if "-f" in argv:
            world.functions.pop(name, None)
    return _DONE


def _set(_machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome:
    arguments = list(argv[1:])
    if not arguments:
        return Outcome((ENVIRONMENT,))
    while arguments and arguments[0][:1] in ("-", "+") and arguments[0] != "--":
        word = arguments.pop(0)
        named = arguments.pop(0) if word[1:].endswith("o") and arguments else ""
        if "u" in word[1:] or named == "nounset":
            (world.options.add if word[0] == "-" else world.options.discard)("nounset")
    if arguments:
        world.positional = tuple(arguments[1:] if arguments[0] == "--" else arguments)
    elif argv[-1] == "--":
        world.positional = ()
    return _DONE


def _shift(_machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome:
    count = int(argv[1]) if len(argv) > 1 and argv[1].isdigit() else 1
    world.positional = world.positional[count:]
    return Outcome()


def _eval(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome:
    text = " ".join(argv[1:])
    machine.emit(world, argv)
    return machine.run_text(world, text)


def _source(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome:
    machine.emit(world, argv)
    operands = argv[2:] if argv[1:2] == ("--",) else argv[1:]
    if not operands:
        return Outcome()
    texts = external.program_file(machine, world, operands[0])
    for text in texts:
        machine.run_text(world, text)
    if not texts:
        follow_script(machine, world, world.locate(operands[0]))
    return Outcome()


def _command(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome:
    """`command`, `builtin`, `exec`: run the rest, or only look it up."""
    from lyma_server.executor.calls import execute

    options = read_options(argv[1:], ("-a",) if argv[0] == "exec" else (), permute=False)
    if argv[0] == "command" and options.has("-v", "-V"):
        return Outcome(folding.locate_programs(options.operands))
    if not options.operands:
        if argv[0] == "exec":
            _keep_descriptors(world)
        return _DONE
    return execute(machine, world, options.operands, plain=True)


def _keep_descriptors(world: World) -> None:
    """`exec 3<>file` leaves the descriptor open for what follows."""
    for redirection in world.redirections:
        world.descriptors[redirection.descriptor] = redirection.target
    world.kept = (world.stdin, world.piped)


def _trap(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome:
    operands = [word for word in argv[1:] if word not in ("--", "-p", "-l")]
    if len(operands) > 1 and operands[0] not in ("", "-"):
        machine.run_shell(world, operands[0])
    return Outcome()


def _alias(_machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome:
    for word in argv[1:]:
        name, equals, value = word.partition("=")
        if equals:
            world.aliases[name] = value
    return Outcome()


def _read(_machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome:
    """`read name...`: takes one line of what is known of stdin; `mapfile` takes all of it."""
    options = read_options(argv[1:], ("-a", "-d", "-i", "-n", "-N", "-p", "-t", "-u"))
    names = options.operands or ("REPLY",)
    text = world.stdin[0] if world.stdin else ""
    if len(world.stdin) > 1:
        world.set(names[0], limit(line.split("\n")[0] for line in world.stdin))
        return Outcome()
    if text == "":
        for name in names:
            world.set(name, ("",))
        return Outcome(status=False)
    line, newline, rest = text.partition("\n")
    if not (set(text.rstrip("\n")) <= {UNKNOWN} or (not is_known(text) and not newline)):
        world.stdin = (rest,)
    separators = (world.get("IFS") or (" \t\n",))[0]
    values = line.split(None if separators == " \t\n" else separators[:1], len(names) - 1) if separators else [line]
    if array := options.value("-a"):
        world.arrays[array] = {str(index): value for index, value in enumerate(line.split())}
        return Outcome()
    for index, name in enumerate(names):
        world.set(name, (values[index].strip() if index < len(values) else "",))
    return Outcome()


def _mapfile(_machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome:
    options = read_options(argv[1:], ("-d", "-n", "-O", "-s", "-u", "-C", "-c"))
    lines = (world.stdin[0] if world.stdin else "").splitlines()
    world.arrays[(options.operands or ("MAPFILE",))[0]] = {str(index): line for index, line in enumerate(lines)}
    return Outcome()


def _test(_machine: Machine, _world: World, argv: tuple[str, ...]) -> Outcome:
    arguments = argv[1:-1] if argv[0] == "[" and argv[-1] == "]" else argv[1:]
    return Outcome(status=conditions.test_arguments(arguments))


def _end(_machine: Machine, _world: World, _argv: tuple[str, ...]) -> Outcome:
    return Outcome(ends=True)


def _print(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome:
    """`echo` and `printf`; `printf -v` sets a variable."""
    machine.emit(world, argv)
    if argv[0] == "printf" and argv[1:2] == ("-v",) and len(argv) > 3:
        world.set(argv[2], (folding.print_formatted(argv[3:]),))
        return _DONE
    return Outcome(folding.fold(world, argv), assumed=True)


def _folder(_machine: Machine, world: World, _argv: tuple[str, ...]) -> Outcome:
    return Outcome(limit(folder + "\n" for folder in world.cwd), assumed=True)


def _look_up(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome:
    """`type`, `hash`, `complete`, `history` and the like: names only."""
    machine.emit(world, argv)
    return Outcome((UNKNOWN,))


def _hash(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome:
    """`hash -p path name` gives a program another name."""
    if argv[1:2] == ("-p",) and len(argv) > 3:
        world.aliases[argv[3]] = argv[2]
    return _look_up(machine, world, argv)


def _option(_machine: Machine, _world: World, _argv: tuple[str, ...]) -> Outcome:
    return Outcome()


def _time(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome:
    from lyma_server.executor.calls import execute

    rest = argv[2:] if argv[1:2] == ("-p",) else argv[1:]
    return execute(machine, world, rest) if rest else Outcome()


BUILTINS: dict[str, Builtin] = {
    ":": _colon, "true": _colon, "false": _colon, "wait": _colon, "jobs": _colon, "fg": _colon, "bg": _colon,
    "cd": _change_folder, "pushd": _change_folder, "popd": _change_folder, "pwd": _folder,
    "export": _export, "readonly": _export, "declare": _export, "typeset": _export, "local": _export,
    "unset": _unset, "set": _set, "shift": _shift, "eval": _eval, "source": _source, ".": _source,
    "command": _command, "builtin": _command, "exec": _command, "trap": _trap, "alias": _alias, "unalias": _colon,
    "read": _read, "mapfile": _mapfile, "readarray": _mapfile, "[": _test, "test": _test,
    "exit": _end, "return": _end, "logout": _end, "break": _end, "continue": _end, "echo": _print, "printf": _print,
    "type": _look_up, "hash": _hash, "history": _look_up, "fc": _look_up, "bind": _look_up, "enable": _look_up,
    "shopt": _option, "umask": _option, "ulimit": _option, "getopts": _option, "let": _option, "caller": _option,
    "times": _option, "disown": _option, "time": _time,
}  # fmt: skip
