"""Program text in other formats: crontabs, makefiles, package scripts, awk, sed, expect."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from lyma_server.executor.languages import UNSEEN_PROGRAM
from lyma_server.executor.marks import DECODED, NETWORK, UNKNOWN, blur
from lyma_server.executor.options import read_options
from lyma_server.executor.world import Alternatives, Outcome, World

if TYPE_CHECKING:
    from lyma_server.executor.evaluation import Machine

_CRON_LINE = re.compile(r"^\s*(?:@\w+|(?:[\d*/,\-a-zA-Z]+\s+){4}[\d*/,\-a-zA-Z]+)\s+(.+)$")
_AWK_SOCKET = re.compile(r"/inet6?4?/(?:tcp|udp)/")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')


def _text_of(world: World, path: str | None) -> Alternatives:
    return world.stdin if path in (None, "-", "/dev/stdin") else (world.read(path or "") or ())


def crontab(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome | None:
    """A crontab from a file or stdin: each line's command."""
    options = read_options(argv[1:], ("-u",))
    if options.has("-l", "-e", "-r"):
        return None
    for text in _text_of(world, options.operands[0] if options.operands else None):
        cron_lines(machine, world, text)
    return None


def cron_lines(machine: Machine, world: World, text: str) -> None:
    for line in text.splitlines():
        match = _CRON_LINE.match(line)
        if match:
            machine.run_loose(world, match.group(1))


def make(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome | None:
    """A makefile from stdin, or one that this command wrote: each line of its recipes."""
    options = read_options(
        argv[1:], ("-f", "-C", "-j", "-I", "-o", "-W", "-l", "--file", "--makefile", "--directory", "--eval")
    )
    inner = world.fork()
    if folder := options.value("-C", "--directory"):
        inner.cwd = (world.locate(folder),)
    named = options.value("-f", "--file", "--makefile")
    for file in (named,) if named else ("GNUmakefile", "makefile", "Makefile"):
        for text in _text_of(inner, file):
            if NETWORK in text or DECODED in text:
                machine.emit(inner, argv, program=UNSEEN_PROGRAM)
            _makefile(machine, inner, text)
    return None


def _makefile(machine: Machine, world: World, text: str) -> None:
    variables = dict(re.findall(r"(?m)^(\w+)\s*[:?]?=\s*(.*)$", text))
    for name, value in re.findall(r"\$\(shell\s+([^)]*)\)()", text):
        machine.run_loose(world, name + value)
    for line in text.replace("\\\n", " ").splitlines():
        recipe = (
            line[1:]
            if line.startswith("\t")
            else line.partition(";")[2]
            if re.match(r"^[\w.%/ -]+:[^=]*;", line)
            else ""
        )
        recipe = re.sub(
            r"\$[({](\w+)[)}]", lambda match: variables.get(match.group(1), "${" + match.group(1) + "}"), recipe
        )
        if recipe.strip():
            machine.run_loose(world, recipe.lstrip("@-+ ").replace("$$", "$"))


_M4_COMMAND = re.compile(r"\b(?:e?syscmd|syscmd)\s*\(\s*[`\"]?([^')\"]*)")


def m4(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome | None:
    """`syscmd` and `esyscmd` run a command while text is expanded."""
    operands = read_options(argv[1:], ("-D", "-I", "-U", "-F", "-R")).operands
    for file in operands or (None,):
        for text in _text_of(world, file):
            for command in _M4_COMMAND.findall(text):
                machine.run_loose(world, command)
    return None


_NPM_SCRIPTS = {"test": "test", "start": "start", "t": "test", "stop": "stop", "restart": "restart", "install": "install", "i": "install",
                "ci": "install", "publish": "publish", "pack": "pack"}  # fmt: skip
_LIFECYCLE = ("preinstall", "install", "postinstall", "prepare", "prepublish", "prepack")


def npm(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome | None:
    """`npm run x` of a package.json that this command wrote."""
    operands = read_options(argv[1:], ("--prefix", "-C", "--cwd", "-w", "--workspace", "--filter")).operands
    verb = operands[0] if operands else "install"
    name = operands[1] if verb in ("run", "run-script", "rum") and len(operands) > 1 else _NPM_SCRIPTS.get(verb, verb)
    for text in world.read("package.json") or ():
        try:
            scripts = json.loads(text).get("scripts", {})
        except (ValueError, AttributeError):
            continue
        names = ("pre" + name, name, "post" + name, *(_LIFECYCLE if name == "install" else ()))
        for script in dict.fromkeys(names):
            if isinstance(scripts.get(script), str):
                machine.run_loose(world, scripts[script])
    return None


def awk(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome | None:
    """`system("...")`, `"..." | getline` and `print | "..."`; a program that only prints a string is worked out."""
    options = read_options(argv[1:], ("-F", "-v", "-f", "-i"), permute=False)
    file = options.value("-f")
    texts = _text_of(world, file) if file else options.operands[:1]
    given = tuple(value.partition("=")[2] for value in options.all_values("-v"))
    for text in texts:
        strings = [re.sub(r'\\(["\\/])', r"\1", found) for found in _STRING.findall(text)]
        if "system" in text or re.search(r'"\s*\|&?\s*getline|\|&?\s*"|\|\s*\w+', text):
            for string in dict.fromkeys((*strings, "".join(strings), *given)):
                machine.run_loose(world, string)
        if re.search(r"(?<!\w)system\s*\(\s*(?:\$\d|\w)|\$\d\s*\|\s*getline", text) or re.search(
            r'print[^|]*\|\s*"(?:ba|z|da)?sh', text
        ):
            for stdin in world.stdin:
                machine.run_loose(world, stdin)
        if _AWK_SOCKET.search(text) and re.search(r"\|&|\bsystem\b|\bgetline\b", text):
            machine.emit(world, ("reverse shell", "awk"))
    return Outcome(tuple(blur(stdin) if stdin else "" for stdin in world.stdin)) if not options.operands[1:] else None


_SED_EXEC = re.compile(r"(?:^|[;{}\n])\s*(?:\d+|\$|/[^/]*/)?(?:,(?:\d+|\$|/[^/]*/))?\s*e\s+([^\n]+)")
_SED_FLAG = re.compile(r"s(.)(?:[^\\]|\\.)*?\1((?:[^\\]|\\.)*?)\1[gpiIm0-9]*e")


def sed(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome | None:
    """The `e` command and the `e` flag of GNU sed run their text."""
    options = read_options(argv[1:], ("-e", "-f", "-l", "--expression", "--file"))
    scripts = options.all_values("-e", "--expression") or options.operands[:1]
    for script in scripts:
        for command in _SED_EXEC.findall(script):
            machine.run_loose(world, command)
        for _, replacement in _SED_FLAG.findall(script):
            machine.run_loose(world, replacement)
            for stdin in world.stdin:
                machine.run_loose(world, stdin)
    return None


def expect(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome | None:
    """What an expect script spawns and runs."""
    options = read_options(argv[1:], ("-c", "-f"))
    texts = options.all_values("-c") or _text_of(world, options.value("-f") or (options.operands or (None,))[0])
    for text in texts:
        for command in re.findall(r"(?:spawn|exec|system)\s+([^;\n\]]+)", text):
            machine.run_loose(world, command.replace("-noecho ", ""))
    return Outcome((UNKNOWN,))
