"""Program text that reaches an interpreter: by option, here-document, pipe or file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lyma_server.executor import external
from lyma_server.executor.languages import read_program
from lyma_server.executor.marks import UNKNOWN
from lyma_server.executor.scripts_on_disk import follow_script
from lyma_server.executor.tools import LANGUAGES, is_shell, language_of
from lyma_server.executor.world import Alternatives, Outcome, World

if TYPE_CHECKING:
    from lyma_server.executor.evaluation import Machine

_SHELL_VALUES = frozenset({"-o", "-O", "+o", "+O", "--rcfile", "--init-file"})
_VERBS = {"deno": ("run",), "bun": ("run",), "puppet": ("apply",)}
_LANGUAGE_VALUES = frozenset({"-m", "-W", "-X", "-I", "-r", "--require"})


def interpret(machine: Machine, world: World, name: str, argv: tuple[str, ...]) -> Outcome | None:
    """Follow the program text that `argv` hands to an interpreter; None where `name` is no interpreter."""
    if is_shell(name):
        return _shell(machine, world, argv)
    language = language_of(name)
    if language is None:
        return None
    texts = _language_texts(machine, world, language, argv)
    for text in texts:
        read_program(machine, world, language, text, argv)
    return Outcome((UNKNOWN,))


def _shell(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome:
    inner = world.fork()
    arguments = list(argv[1:])
    wants_text = from_stdin = False
    while arguments and arguments[0][:1] in ("-", "+") and arguments[0] not in ("-", "--"):
        word = arguments.pop(0)
        if word in _SHELL_VALUES:
            if "file" in word and arguments:
                _run_texts(machine, inner, external.program_file(machine, world, arguments[0]), None)
            arguments = arguments[1:]
        elif not word.startswith("--"):
            wants_text, from_stdin = wants_text or "c" in word, from_stdin or "s" in word
            inner.options |= {"nounset"} if "u" in word and word[0] == "-" else set()
    arguments = arguments[1:] if arguments[:1] in (["--"], ["-"]) else arguments
    if wants_text:
        if not arguments:
            return Outcome()
        inner.positional = tuple(arguments[2:])
        inner.variables["0"] = tuple(arguments[1:2]) or ("bash",)
        return _run_texts(machine, inner, (arguments[0],), None)
    if arguments and not from_stdin:
        inner.variables["0"] = (arguments[0],)
        inner.positional = tuple(arguments[1:])
        if not (texts := external.program_file(machine, world, arguments[0])):
            follow_script(machine, inner, world.locate(arguments[0]))
        return _run_texts(machine, inner, texts, world.locate(arguments[0]))
    inner.positional = tuple(arguments)
    inner.stdin = ("",)
    return _run_texts(machine, inner, world.stdin, None)


def _run_texts(machine: Machine, world: World, texts: Alternatives, path: str | None) -> Outcome:
    outputs: list[str] = []
    if path is not None:
        machine.stack.append(path)
    try:
        for text in texts:
            outputs += machine.run_shell(world, text).output
    finally:
        if path is not None:
            machine.stack.pop()
    return Outcome(tuple(dict.fromkeys(outputs)) or (UNKNOWN,))


def _language_texts(machine: Machine, world: World, language: str, argv: tuple[str, ...]) -> Alternatives:
    """The program texts in the arguments of an interpreter, else its file, else stdin."""
    options = LANGUAGES[language]
    arguments = list(argv[1:])
    texts: list[str] = []
    position = 0
    while position < len(arguments):
        word = arguments[position]
        position += 1
        text = _option_text(word, options, arguments, position)
        if text is not None:
            texts += world.stdin if text == "-" else (text,)
            if language in ("python", "pypy"):
                return (text,)
            position += 1
        elif word == "-m" and language in ("python", "pypy"):
            rest = arguments[position:]
            return tuple(word for word in rest[1:] if not word.startswith("-")) if rest[:1] == ["timeit"] else ()
        elif word in _LANGUAGE_VALUES:
            position += 1
        elif word == "-" or not word.startswith("-"):
            if word == "-":
                return (*texts, *world.stdin)
            if word in _VERBS.get(language, ()):
                continue
            return tuple(texts) or external.program_file(machine, world, word)
    return tuple(texts) or world.stdin


def _option_text(word: str, options: tuple[str, ...], arguments: list[str], position: int) -> str | None:
    """The text that an option such as `-e text`, `-ne text` or `--eval=text` carries."""
    following = arguments[position] if position < len(arguments) else ""
    if word in options:
        return following if not word.startswith("/") else " ".join(arguments[position:])
    for option in options:
        if option.startswith("--") and word.startswith(option + "="):
            return word[len(option) + 1 :]
        if len(option) == 2 and option[0] == "-" and word.startswith("-") and not word.startswith("--"):
            letters = word[1:]
            if letters.endswith(option[1]) and letters.isalpha() and len(letters) < 5:
                return following
            if letters.startswith(option[1]) and len(letters) > 1 and not letters.isalpha():
                return letters[1:]
    return None
