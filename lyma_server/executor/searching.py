"""`find`, `fd`, `xargs` and `parallel`: one command for each thing that was found."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from attrs import define

from lyma_server.executor import redirects
from lyma_server.executor.marks import SOMETHING, STAR, UNKNOWN, activate, is_known, taints
from lyma_server.executor.options import read_options
from lyma_server.executor.paths import takes_everything
from lyma_server.executor.world import Outcome, World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lyma_server.executor.evaluation import Machine

MAX_ITEMS = 256
EVERYTHING_BELOW = f"/{STAR}{STAR}"
"""The end of a path that stands for all that lies in a folder, however deep."""

ANYWHERE = "/"
"""Where a list of names in a file may lead: what does not say where it goes is taken to go everywhere."""

_NAMES = frozenset(
    {
        "-name",
        "-iname",
        "-path",
        "-ipath",
        "-wholename",
        "-iwholename",
        "-regex",
        "-iregex",
        "-lname",
        "-ilname",
        "-inum",
        "-samefile",
    }
)
_VALUED = _NAMES | frozenset(
    {"-type", "-xtype", "-mtime", "-atime", "-ctime", "-mmin", "-amin", "-cmin", "-newer", "-anewer", "-cnewer", "-size", "-user", "-group",
     "-uid", "-gid", "-perm", "-maxdepth", "-mindepth", "-fstype", "-links", "-used", "-context", "-regextype", "-printf", "-D", "-newermt",
     "-files0-from", "-newerat", "-newerct", "-fprint", "-fls", "-fprint0"}
)  # fmt: skip
_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_ACTIONS = _RUNS | {"-delete"}


@define
class Search:
    """A `find` command: where it starts and the words of its expression."""

    roots: tuple[str, ...]
    words: tuple[str, ...]


def read_search(arguments: tuple[str, ...]) -> Search:
    rest = list(arguments)
    while rest and (rest[0] in ("-H", "-L", "-P") or rest[0].startswith(("-O", "-D"))):
        rest = rest[2:] if rest[0] == "-D" else rest[1:]
    roots: list[str] = []
    while rest and not rest[0].startswith("-") and rest[0] not in ("(", ")", "!", ","):
        roots.append(rest.pop(0))
    if "-files0-from" in rest:
        roots.append(ANYWHERE)
    return Search(tuple(roots) or (".",), tuple(rest))


@define
class _Reader:
    """Walks an expression of `find` and asks, for an ordinary file, which actions it reaches."""

    words: tuple[str, ...]
    position: int = 0

    def reached(self) -> Iterator[tuple[str, tuple[str, ...], str | None]]:
        """Each action that is reached: its name, its command, and the name pattern that narrows it (None: everything)."""
        branches: list[list[tuple[str, tuple[str, ...]]]] = self._alternatives()
        for branch in branches:
            narrowing = [value[0] for name, value in branch if name == "narrow"]
            for name, command in branch:
                if name in _ACTIONS:
                    yield name, command, narrowing[-1] if narrowing else None

    def _alternatives(self) -> list[list[tuple[str, tuple[str, ...]]]]:
        """The expression as alternatives of conjunctions."""
        whole: list[list[tuple[str, tuple[str, ...]]]] = []
        current: list[list[tuple[str, tuple[str, ...]]]] = [[]]
        negated = False
        while self.position < len(self.words):
            word = self.words[self.position]
            self.position += 1
            if word == ")":
                break
            if word in ("-o", "-or", ","):
                whole += current
                current = [[]]
            elif word in ("!", "-not"):
                negated = not negated
                continue
            elif word == "(":
                inner = self._alternatives()
                inner = [_broad(branch) for branch in inner] if negated else inner
                current = [left + right for left in current for right in inner][:64]
            elif (item := self._primary(word)) is not None:
                kept = _broad([item]) if negated else [item]
                current = [left + kept for left in current]
            negated = False
        return whole + current

    def _primary(self, word: str) -> tuple[str, tuple[str, ...]] | None:  # noqa: PLR0911 - one a kind
        if word in _RUNS:
            command = self._command()
            return (word, command)
        if word == "-delete":
            return (word, ())
        if word == "-empty":
            return ("narrow", (SOMETHING,))
        if word not in _VALUED:
            return None
        value = self.words[self.position] if self.position < len(self.words) else ""
        self.position += 1
        if word in _NAMES and not takes_everything(activate(value)) and not _WHOLE.fullmatch(value):
            return ("narrow", (_narrowed(word, value),))
        if word == "-size" and value in ("0", "0c"):
            return ("narrow", (SOMETHING,))
        return None

    def _command(self) -> tuple[str, ...]:
        command: list[str] = []
        while self.position < len(self.words):
            word = self.words[self.position]
            self.position += 1
            if word == ";" or (word == "+" and command[-1:] == ["{}"]):
                break
            command.append(word)
        return tuple(command)


_WHOLE = re.compile(r"[*?./^$+\[\]!-]*\*[*?./^$+]*|\^?\.[*+]\$?")
_WHOLE_PATH = "/"


def _narrowed(word: str, value: str) -> str:
    """What a test leaves: a name, a whole path (told by its mark), or something."""
    if word in ("-name", "-iname"):
        return value
    return _WHOLE_PATH + value if word in ("-path", "-ipath", "-wholename", "-iwholename") else SOMETHING


def _broad(branch: list[tuple[str, tuple[str, ...]]]) -> list[tuple[str, tuple[str, ...]]]:
    """A branch under `!`: an ordinary file passes, whatever it names."""
    return [item for item in branch if item[0] != "narrow"]


def found_paths(root: str, pattern: str | None) -> tuple[str, ...]:
    """What a search below `root` hands on: itself and all in it, or what a name pattern leaves."""
    base = root.rstrip("/")
    if pattern is None:
        return (root, base + EVERYTHING_BELOW)
    if pattern.startswith(_WHOLE_PATH):
        return (activate(pattern[len(_WHOLE_PATH) :]),)
    name = activate(pattern)
    if name == SOMETHING or not is_known(name):
        return (f"{base}/{SOMETHING}",)
    return (f"{base}/{name}", f"{base}/{SOMETHING}/{name}")


def deletions(arguments: tuple[str, ...]) -> Iterator[str]:
    """The paths that `find ... -delete` takes."""
    search = read_search(arguments)
    for name, _, pattern in _Reader(search.words).reached():
        if name == "-delete":
            for root in search.roots:
                yield from found_paths(root, pattern)


def find(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome:
    from lyma_server.executor.calls import execute

    search = read_search(argv[1:])
    reader = _Reader(search.words)
    for name, command, pattern in reader.reached():
        if name not in _RUNS or not command:
            continue
        inner = world.fork()
        for root in search.roots:
            paths = found_paths(root, pattern)
            execute(machine, inner, tuple(_fill(command, "{}", paths)), plain=True)
            for path in paths[1:]:  # `;` runs it once for each: what is found below is a first argument as well
                execute(machine, inner, tuple(_fill(command, "{}", (path,))), plain=True)
    return Outcome((_listing(search),))


def _listing(search: Search) -> str:
    """What `find` prints, as paths with patterns."""
    pattern = None
    for word, value in pairwise(search.words):
        if word in _NAMES and value not in ("*", "*.*"):
            pattern = value
    lines = [path for root in search.roots for path in found_paths(root, pattern)]
    return "\n".join(lines) + "\n"


def _fill(command: tuple[str, ...], hole: str, items: tuple[str, ...]) -> Iterator[str]:
    """`command` with `hole` replaced: alone by every item, inside a word by each in turn."""
    for word in command:
        if word == hole:
            yield from items
        elif hole in word:
            yield from (word.replace(hole, item) for item in items[:1])
        else:
            yield word


def fd(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome | None:
    from lyma_server.executor.calls import execute

    flag = next((word for word in argv if word in ("-x", "-X", "--exec", "--exec-batch")), None)
    if flag is None:
        return None
    place = argv.index(flag)
    options = read_options(
        argv[1:place], ("-e", "-E", "-d", "-t", "-g", "--type", "--extension", "--exclude", "--max-depth")
    )
    pattern = options.operands[0] if options.operands and options.operands[0] not in (".", "", "*") else None
    if options.value("-e", "--extension"):
        pattern = SOMETHING
    roots = options.operands[1:] or (".",)
    command = argv[place + 1 :]
    command = command if any("{" in word for word in command) else (*command, "{}")
    for root in roots:
        execute(
            machine,
            world.fork(),
            tuple(_fill(command, "{}", found_paths(root, SOMETHING if pattern else None))),
            plain=True,
        )
    return None


_XARGS_VALUES = ("-a", "-d", "-E", "-I", "-L", "-n", "-P", "-s", "-J", "-R", "--arg-file", "--delimiter", "--max-args", "--max-procs",
                 "--max-lines", "--max-chars", "--process-slot-var")  # fmt: skip


def xargs(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome:
    from lyma_server.executor.calls import execute

    options = read_options(argv[1:], _XARGS_VALUES, permute=False)
    command = options.operands or ("echo",)
    hole = options.value("-I", "-J", "--replace") or ("{}" if options.has("-i", "--replace") else None)
    file = options.value("-a", "--arg-file")
    texts = redirects.contents(world, file) if file else world.stdin
    outcome = Outcome()
    for text in texts:
        items = _items(
            text, options.value("-d", "--delimiter"), zero=options.has("-0", "--null"), lines=hole is not None
        )
        inner = world.fork()
        inner.stdin = ("",)
        if hole is None:
            outcome = execute(machine, inner, (*command, *items), plain=True)
            continue
        for item in items:
            outcome = execute(machine, inner, tuple(word.replace(hole, item) for word in command), plain=True)
    return outcome


def _items(text: str, delimiter: str | None, *, zero: bool, lines: bool) -> tuple[str, ...]:
    if delimiter:
        parts = text.split(delimiter.encode().decode("unicode_escape") if delimiter.isascii() else delimiter)
    elif zero:
        parts = re.split(r"[\0\n]", text)
    elif lines:
        parts = text.splitlines()
    else:
        parts = [
            quoted_1 or quoted_2 or plain
            for quoted_1, quoted_2, plain in re.findall(r"'([^']*)'|\"([^\"]*)\"|(\S+)", text)
        ]
    items = tuple(part.strip("\n") for part in parts if part.strip())
    if len(items) > MAX_ITEMS:
        from lyma_server.executor.world import TooComplex

        raise TooComplex
    return items


def parallel(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome:
    from lyma_server.executor.calls import execute, quote

    arguments = list(argv[1:])
    sources = [index for index, word in enumerate(arguments) if word in (":::", ":::+", "::::")]
    head = arguments[: sources[0]] if sources else arguments
    items = tuple(word for word in arguments[sources[0] :] if not word.startswith(":::")) if sources else ()
    if not sources:
        items = tuple(line for text in world.stdin for line in text.splitlines())[:MAX_ITEMS]
    command = read_options(
        head,
        ("-j", "-a", "-I", "-N", "-n", "-S", "--jobs", "--arg-file", "--delay", "--joblog", "--timeout"),
        permute=False,
    ).operands
    for item in items or ("",):
        if not command:
            machine.run_loose(world, item)
        elif len(command) == 1 and " " in command[0]:
            text = command[0] if "{}" in command[0] else command[0] + " {}"
            machine.run_loose(world, text.replace("{}", quote(item)))
        else:
            filled = tuple(word.replace("{}", item) for word in command)
            execute(
                machine, world.fork(), filled if any("{}" in word for word in command) else (*filled, item), plain=True
            )
    return Outcome((UNKNOWN + taints("".join(items)),))
