"""Programs outside the shell: told apart, written down, and followed where they start others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lyma_server.executor import folding, interpreters, scripts_on_disk, side_effects, wrappers
from lyma_server.executor.invocation import program_name, replace_prefix
from lyma_server.executor.marks import UNKNOWN, is_known
from lyma_server.executor.tools import DATA_ONLY, INTERPRETED_FILES, is_shell, is_tail_tool, language_of
from lyma_server.executor.world import Alternatives, Outcome, World

if TYPE_CHECKING:
    from lyma_server.executor.evaluation import Machine


MAX_REENTRY, MAX_FUNCTIONS = 2, 16
"""A script may rewrite itself and run again; after this it is no longer followed."""


def start(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome:
    """Follow one program with its arguments."""
    if not argv:
        return Outcome()
    name = identify(world, argv[0])
    machine.emit(world, argv, program=name)
    if not is_known(name) or _is_unseen(world, argv[0]):
        machine.emit(world, (UNKNOWN, *argv[1:]))
        _maybe_shell(machine, world, argv)
        _maybe_function(machine, world, argv)
    output = folding.fold(world, (name, *argv[1:]))
    side_effects.note(machine, world, name, argv)
    inner = wrappers.unwrap(machine, world, name, argv)
    if inner is None:
        inner = interpreters.interpret(machine, world, name, argv)
    if inner is None:
        inner = _run_file(machine, world, argv)
    if inner is None:
        _judge_tail(machine, world, name, argv)
        return Outcome(output)
    if language_of(name):
        _judge_tail(machine, world, name, argv)
    return inner if not folding.follows(name) else Outcome(output, inner.status)


def identify(world: World, word: str) -> str:
    """The program that a command word means: through links and copies made before."""
    name = program_name(word)
    if "/" not in word:
        return name
    place = world.locate(word)
    for _ in range(8):
        twin = world.twins.get(place)
        if twin is None:
            moved = (replace_prefix(place, link, target) for link, target in world.links.items())
            twin = next((path for path in moved if path is not None), None)
        if twin is None:
            break
        place, name = twin, program_name(twin)
    return name


def _is_unseen(world: World, word: str) -> bool:
    """Whether a program was written by this command, with text that is not known: then it may be any."""
    texts = world.read(word) if "/" in word else None
    return texts is not None and not all(map(is_known, texts))


def _maybe_shell(machine: Machine, world: World, argv: tuple[str, ...]) -> None:
    """An unknown program may be a shell: `$X -c '...'`."""
    for index, word in enumerate(argv[1:-1], start=1):
        if word.startswith("-") and not word.startswith("--") and word.endswith("c"):
            machine.run_shell(world, argv[index + 1])


def _maybe_function(machine: Machine, world: World, argv: tuple[str, ...]) -> None:
    """An unknown name may be that of any function that was defined."""
    from lyma_server.executor.calls import execute

    wanted = () if scripts_on_disk.LENIENT in world.options else tuple(world.functions)
    for name in wanted[:MAX_FUNCTIONS]:
        if name not in machine.stack:
            execute(machine, world.fork(), (name, *argv[1:]))


def _run_file(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome | None:
    """A script that this command wrote and now starts."""
    texts = world.read(argv[0]) if "/" in argv[0] else None
    if texts is None and "/" in argv[0]:
        _follow_disk(machine, world, argv)
    if texts is None or machine.stack.count(world.locate(argv[0])) > MAX_REENTRY:
        return None
    interpreter = "sh"
    for text in texts:
        first = text.split("\n", 1)[0]
        if first.startswith("#!"):
            words = [program_name(word) for word in first[2:].split() if not word.startswith("-")]
            interpreter = next((word for word in words if word != "env"), "sh")
    suffix = "." + argv[0].rsplit(".", 1)[-1]
    if not any(text.startswith("#!") for text in texts):
        interpreter = INTERPRETED_FILES.get(suffix, "sh")
    return interpreters.interpret(machine, world, interpreter, (interpreter, *argv))


def _follow_disk(machine: Machine, world: World, argv: tuple[str, ...]) -> None:
    inner = world.fork()
    inner.positional = argv[1:]
    scripts_on_disk.follow_script(machine, inner, world.locate(argv[0]))


def _judge_tail(machine: Machine, world: World, name: str, argv: tuple[str, ...]) -> None:
    """For a program that may run others, judge from each argument that names a destructive tool or a shell with text."""
    if name in DATA_ONLY:
        return
    for index, word in enumerate(argv[1:], start=1):
        inner = program_name(word)
        if is_tail_tool(inner) and len(argv) > index + 1:
            machine.emit(world, argv[index:], program=inner)
            wrappers.unwrap(machine, world, inner, argv[index:])
        elif (is_shell(inner) or language_of(inner)) and len(argv) > index + 2:
            interpreters.interpret(machine, world, inner, argv[index:])


def program_file(machine: Machine, world: World, path: str) -> Alternatives:
    """The text of a script, where this command wrote it; reading it twice inside itself is not followed."""
    from lyma_server.executor.redirects import NETWORK_FILES, STDIN_FILES, contents

    place = world.locate(path)
    if machine.stack.count(place) > MAX_REENTRY:
        return ()
    return contents(world, path) if place in STDIN_FILES or place.startswith(NETWORK_FILES) else world.read(path) or ()
