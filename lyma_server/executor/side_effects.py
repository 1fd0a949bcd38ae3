"""What programs leave in files, so that what is written and then run in one command is read as what it is."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from lyma_server.executor.marks import NETWORK, UNKNOWN, is_plain
from lyma_server.executor.options import Options, read_options
from lyma_server.executor.world import World

if TYPE_CHECKING:
    from lyma_server.executor.evaluation import Machine

Effect: TypeAlias = Callable[["Machine", World, tuple[str, ...]], None]

STARTUP_FILES = frozenset(
    {
        ".bashrc",
        ".bash_profile",
        ".bash_login",
        ".profile",
        ".zshrc",
        ".zprofile",
        ".zshenv",
        ".bash_logout",
        ".bash_aliases",
    }
)

CRON_FOLDERS = ("/etc/cron", "/var/spool/cron")


def note(machine: Machine, world: World, name: str, argv: tuple[str, ...]) -> None:
    """Remember what `argv` writes, copies or links."""
    effect = _EFFECTS.get(name)
    if effect is not None:
        effect(machine, world, argv[1:])


def _pairs(options: Options) -> list[tuple[str, str]]:
    """Sources with the paths that they get, for `cp`, `mv`, `ln` and `install`."""
    folder = options.value("-t", "--target-directory")
    operands = options.operands
    if folder is None and len(operands) < 2:
        return [(operands[0], posixpath.basename(operands[0]))] if operands else []
    sources, target = (operands, folder) if folder is not None else (operands[:-1], operands[-1])
    into = folder is not None or len(sources) > 1 or target.endswith("/")
    return [(source, f"{target.rstrip('/')}/{posixpath.basename(source)}" if into else target) for source in sources]


def _copy(_machine: Machine, world: World, arguments: tuple[str, ...]) -> None:
    for source, target in _pairs(
        read_options(arguments, ("-t", "-S", "-m", "-o", "-g", "--mode", "--target-directory"))
    ):
        known = world.read(source)
        if known is not None:
            world.write(target, known)
        elif is_plain(source) and is_plain(target):
            for place in (target, f"{target}/{posixpath.basename(source)}"):
                world.twins[world.locate(place)] = world.twins.get(world.locate(source), world.locate(source))


def _link(_machine: Machine, world: World, arguments: tuple[str, ...]) -> None:
    for source, target in _pairs(read_options(arguments, ("-t", "-S", "--target-directory"))):
        place = world.locate(target)
        known = world.read(source)
        if known is not None:
            world.write(target, known)
        if is_plain(source) and is_plain(place):
            folder = place if source.startswith("/") else posixpath.dirname(place)
            from lyma_server.executor.paths import normalise

            world.links[place] = normalise(source, folder)
            world.links.setdefault(f"{place}/{posixpath.basename(source)}", normalise(source, world.cwd[0]))


def _tee(machine: Machine, world: World, arguments: tuple[str, ...]) -> None:
    options = read_options(arguments)
    for target in options.operands:
        machine.save(world, target, world.stdin, append=options.has("-a", "--append"))


def _download(_machine: Machine, world: World, arguments: tuple[str, ...]) -> None:
    """`curl`: writes a file only where it is told to."""
    options = read_options(
        arguments, ("-o", "-H", "-d", "-X", "-u", "-A", "-b", "-e", "-F", "-T", "-m", "-w", "--output")
    )
    names = options.all_values("-o", "--output")
    if options.has("-O", "--remote-name", "--remote-name-all"):
        names += tuple(map(_last_part, options.operands))
    _write_fetched(world, names)


def _retrieve(_machine: Machine, world: World, arguments: tuple[str, ...]) -> None:
    """`wget`: writes a file unless it is told to print."""
    options = read_options(arguments, ("-O", "-o", "-P", "-U", "--output-document", "--header"))
    named = options.value("-O", "--output-document")
    _write_fetched(world, (named,) if named else tuple(map(_last_part, options.operands)))


def _last_part(url: str) -> str:
    return url.split("?", maxsplit=1)[0].rstrip("/").rsplit("/", 1)[-1]


def _write_fetched(world: World, names: tuple[str, ...]) -> None:
    for name in names:
        if name not in ("", "-"):
            world.write(name, (NETWORK,))


def _dd(_machine: Machine, world: World, arguments: tuple[str, ...]) -> None:
    fields = dict(word.partition("=")[::2] for word in arguments)
    if target := fields.get("of"):
        source = fields.get("if")
        content = world.read(source) if source else world.stdin
        world.write(target, content if content is not None else (UNKNOWN,))
        if source and is_plain(source + target):
            world.twins[world.locate(target)] = world.locate(source)


_EFFECTS: dict[str, Effect] = {
    "cp": _copy, "mv": _copy, "install": _copy, "rsync": _copy, "ln": _link, "tee": _tee, "sponge": _tee, "curl": _download,
    "wget": _retrieve, "dd": _dd,
}  # fmt: skip
