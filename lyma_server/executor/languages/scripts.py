"""JavaScript, Perl, Ruby, PHP, Lua and their like: calls with texts, found without a grammar of each."""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING

from lyma_server.executor.escapes import decode_ansi
from lyma_server.executor.forks import FORK_BOMB
from lyma_server.executor.languages.python_calls import REVERSE_SHELL
from lyma_server.executor.languages.script_tables import (
    ALIASED,
    COPIERS,
    DELETING_METHOD,
    EVALUATES,
    EVALUATES_FETCHED,
    FETCHES,
    FOLDER_EXPRESSION,
    FORK_LOOP,
    HOME_EXPRESSION,
    LINKERS,
    LISP_TOKEN,
    LISPS,
    LISTERS,
    MODE_CHANGERS,
    MOVERS,
    READERS,
    REMOVERS,
    RUNNERS,
    RUNS_LINE,
    SENDS,
    SHELL_START,
    SOCKET,
    SPELLED_OUT,
    TAKES_SOCKET,
    TOKEN,
    WHOLE_ENVIRONMENT,
    WRITERS,
)
from lyma_server.executor.marks import ENVIRONMENT, STAR, UNKNOWN, activate, deactivate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lyma_server.executor.evaluation import Machine
    from lyma_server.executor.world import World


def read_script(machine: Machine, world: World, language: str, text: str) -> None:
    """Follow a program of one of these languages by the calls in it."""
    from lyma_server.executor.languages import UNSEEN_PROGRAM

    home, cwd = world.home()[0], world.cwd[0]
    ready = FOLDER_EXPRESSION.sub(f'"{cwd}"', HOME_EXPRESSION.sub(f'"{home}"', text))
    for shape, call in SPELLED_OUT.get(language, ()):
        ready = shape.sub(call, ready)
    if FORK_LOOP.search(ready):
        machine.emit(world, (FORK_BOMB,))
    if EVALUATES_FETCHED.search(ready) or (EVALUATES.search(ready) and FETCHES.search(ready)):
        machine.emit(world, (language, text), program=UNSEEN_PROGRAM)
    taken = TAKES_SOCKET.search(ready) if SOCKET.search(ready) else None
    if taken and RUNS_LINE.search(ready, taken.end()):
        machine.emit(world, (REVERSE_SHELL, language))
    if WHOLE_ENVIRONMENT.search(ready) and SENDS.search(ready):
        machine.emit(world, ("curl", ENVIRONMENT))
    if language in ("tclsh", "wish", "osascript", "cmd"):
        _read_bare(machine, world, ready)
    _Script(machine, world, ready, language).read()


def _read_bare(machine: Machine, world: World, text: str) -> None:
    """Commands that stand without quotes (Tcl's `exec`), or in AppleScript's `do shell script`."""
    for command in re.findall(r"(?:^|[;\[\n])\s*(?:exec|file)\s+([^;\]\n]+)", text):
        machine.run_loose(world, re.sub(r"^delete\s+-force", "rm -rf", command))
    for command in re.findall(r"do script\s+\"((?:[^\"\\]|\\.)*)\"", text):
        machine.run_loose(world, decode_ansi(command))
    for command in re.findall(r"do shell script\s+\"((?:[^\"\\]|\\.)*)\"", text):
        machine.run_loose(world, decode_ansi(command))


_HIDDEN = {character: chr(1 + index) for index, character in enumerate("$@#`")}
_SHOWN = {hidden: character for character, hidden in _HIDDEN.items()}


class _Script:
    def __init__(self, machine: Machine, world: World, text: str, language: str) -> None:
        self.machine, self.world, self.language = machine, world, language
        self.sockets = SOCKET.search(text) is not None
        pattern = LISP_TOKEN if language in LISPS else TOKEN
        self.tokens = [(match.lastgroup or "", match.group(0)) for match in pattern.finditer(text)]
        self.tokens = [token for token in self.tokens if token[0] not in ("space", "comment")]
        self.names: dict[str, str] = {}
        self.listed: list[str] = []
        self.aliases = {alias: name for name, alias in ALIASED.findall(text)}

    def read(self) -> None:
        self._learn_names()
        self._learn_listings()
        for index, (kind, text) in enumerate(self.tokens):
            self.machine.step()
            if (
                (kind == "back" and self.language not in ("node", "nodejs", "deno", "bun", "tsx", "ts-node"))
                or (kind == "back" and index and self.tokens[index - 1][1].split(".")[-1] in ("$", "exec", "sh"))
                or (kind == "quote" and text.startswith(("qx", "%x")))
            ) or (kind == "string" and self._is_run(index + 1)):
                self._shell(self._text_of(kind, text))
            elif kind == "name":
                self._call(index, text)

    def _learn_listings(self) -> None:
        """Folders that are listed: what a removal that names nothing known goes through."""
        for index, (kind, name) in enumerate(self.tokens):
            if kind != "name" or re.split(r"\.|::|->", name)[-1] not in LISTERS:
                continue
            arguments = self._arguments(index + 1)
            for argument in (text for item in arguments for text in (item if isinstance(item, list) else [item])):
                if argument.startswith(("/", "~")):
                    whole = re.sub(r"/\*\*?(?:/\*)?$", "", deactivate(argument))
                    self.listed.append(f"{self._home(whole)}/{STAR}")

    def _is_run(self, index: int) -> bool:
        """Whether `.execute()` and its like follow: Groovy runs a text by a method of it."""
        return [text for _, text in self.tokens[index : index + 2]] in ([".", "execute"], [".", "run"], [".", "system"])

    def _learn_names(self) -> None:
        """Variables that are given a text."""
        for index in range(1, len(self.tokens) - 1):
            if self.tokens[index][1] == "=" and self.tokens[index - 1][0] == "name":
                value, _ = self._expression(index + 1)
                if value is not None:
                    self.names[self.tokens[index - 1][1]] = value

    def _call(self, index: int, name: str) -> None:
        short = re.split(r"\.|::|->|\?\.", name)[-1].rstrip("!?")
        short = self.aliases.get(short, short)
        if DELETING_METHOD.match(name):
            short = "rm_rf"
        handler = next((handler for names, handler in _HANDLERS if short in names), None)
        if handler is None:
            return
        arguments = list(self._arguments(index + 1))
        if not arguments and short in REMOVERS:
            arguments = self._owner(index) or list(self.listed)
        if arguments:
            handler(self, short, arguments)

    def _owner(self, index: int) -> list[str | list[str]]:
        """The texts in the call whose result a method is called on: `Pathname.new("/x").rmtree`."""
        if index < 3 or [text for _, text in self.tokens[index - 2 : index]] != [")", "."]:
            return []
        position, depth = index - 2, 0
        while position > 0:
            depth += {")": 1, "(": -1}.get(self.tokens[position][1], 0)
            if not depth:
                break
            position -= 1
        inside = self.tokens[position : index - 2]
        return [self._text_of(kind, text) for kind, text in inside if kind in ("string", "quote")]

    def _arguments(self, index: int) -> Iterator[str | list[str]]:
        """The texts among the arguments of a call that starts at a token; lists as lists."""
        depth, limit = 0, min(len(self.tokens), index + 200)
        bare = index < len(self.tokens) and self.tokens[index][1] != "("
        while index < limit:
            kind, text = self.tokens[index]
            if text in (")", "]", "}"):
                depth -= 1
                if depth <= 0 and not (bare and depth == 0):
                    return
            elif text == ";" or (kind == "name" and text in ("if", "unless", "while", "for")):
                return
            elif text == "[":
                items, index = self._list(index + 1)
                yield items
                continue
            elif text in ("(", "{"):
                depth += 1
            value, following = self._expression(index)
            if value is not None:
                yield value
            index = max(following, index + 1)

    def _list(self, index: int) -> tuple[list[str], int]:
        items: list[str] = []
        while index < len(self.tokens) and self.tokens[index][1] != "]":
            value, following = self._expression(index)
            if value is not None:
                items.append(value)
            index = max(following, index + 1)
        return items, index + 1

    def _expression(self, index: int) -> tuple[str | None, int]:
        """A text made of literals, known names and `+`, `.`, `..`, `~` between them; None where none starts here."""
        if index >= len(self.tokens):
            return None, index
        value = self._operand(index)
        if value is None:
            return self._wrapped(index)
        index += 1
        while index + 1 < len(self.tokens) and self.tokens[index][1] in ("+", ".", "~", "/"):
            step = 2 if self.tokens[index + 1][1] == self.tokens[index][1] else 1
            right = self._operand(index + step) if index + step < len(self.tokens) else None
            separator = "/" if self.tokens[index][1] == "/" else ""
            value, index = value + separator + (UNKNOWN if right is None else right), index + step + 1
        return value, index

    def _wrapped(self, index: int) -> tuple[str | None, int]:
        """`path.join(a, b)`, `atob("...")`, `Dir.glob("...")`."""
        kind, name = self.tokens[index]
        if kind != "name" or index + 1 >= len(self.tokens):
            return None, index
        short = re.split(r"\.|::|->", name)[-1]
        if short == "glob" and self.tokens[index + 1][0] in ("string", "quote"):
            pattern = self._text_of(*self.tokens[index + 1])
            return (activate(pattern), index + 2) if pattern else (None, index)
        if self.tokens[index + 1][1] not in ("(", "["):
            return None, index
        if short not in (
            "join",
            "atob",
            "glob",
            "decode64",
            "base64_decode",
            "decode_base64",
            "from",
            "resolve",
            "expand_path",
            "Dir",
            "strrev",
        ):
            return None, index
        texts: list[str] = []
        position = index + 2
        while position < len(self.tokens) and self.tokens[position][1] not in (")", "]"):
            value, following = self._expression(position)
            if value is not None:
                texts.append(value)
            position = max(following, position + 1)
        return self._combine(short, texts), position + 1

    def _combine(self, short: str, texts: list[str]) -> str | None:  # noqa: PLR0911 - one a function
        if not texts:
            return None
        if short in ("join", "resolve"):
            return "/".join(texts)
        if short in ("glob", "Dir"):
            return activate(texts[0])
        if short == "strrev":
            return texts[0][::-1]
        if short == "expand_path":
            return self._home(texts[0])
        if short == "from" and "base64" not in texts[1:] and "hex" not in texts[1:]:
            return texts[0]
        try:
            decoded = bytes.fromhex(texts[0]) if "hex" in texts[1:] else base64.b64decode(texts[0] + "===")
        except (ValueError, binascii.Error):
            return UNKNOWN
        return decoded.decode("utf-8", "replace")

    def _operand(self, index: int) -> str | None:
        kind, text = self.tokens[index]
        if kind in ("string", "back", "quote"):
            return self._text_of(kind, text)
        if kind == "number":
            return text
        return self.names.get(text) if kind == "name" else None

    def _text_of(self, kind: str, token: str) -> str:
        if kind == "quote":
            body = re.sub(r"^(?:qx|%x|qq|q|%q|%Q|%w|qw)\s*.", "", token, flags=re.DOTALL)[:-1]
        else:
            body = token[1:-1]
        if token[0] == "'":
            return re.sub(r"\\([\\'])", r"\1", body)
        hidden = re.sub(r"\\([$@#`])", lambda match: _HIDDEN[match.group(1)], body)
        decoded = re.sub(r"[$#]\{\s*([^}]*?)\s*\}|\$(\w+)", self._interpolated, decode_ansi(hidden))
        return "".join(_SHOWN.get(character, character) for character in decoded)

    def _interpolated(self, match: re.Match[str]) -> str:
        name = match.group(1) or match.group(2)
        if name.strip("'\"").startswith("/"):
            return name.strip("'\"")
        return self.names.get(name, self.names.get("$" + name, (self.world.get(name) or (UNKNOWN,))[0]))

    def _home(self, path: str) -> str:
        return self.world.home()[0] + path[1:] if path == "~" or path.startswith("~/") else path

    def _shell(self, text: str) -> None:
        if self.sockets and SHELL_START.match(text):
            self.machine.emit(self.world, (REVERSE_SHELL, text))
        self.machine.run_loose(self.world, text)

    def _start(self, *argv: str) -> None:
        from lyma_server.executor.external import start

        start(self.machine, self.world.fork(), argv)

    def runs(self, _name: str, arguments: list[str | list[str]]) -> None:
        words = [word for argument in arguments for word in (argument if isinstance(argument, list) else [argument])]
        if not words:
            return
        if len(words) == 1:
            self._shell(words[0])
            return
        if " " in words[0].strip():
            self._shell(words[0])
        if self.sockets and SHELL_START.match(words[0]):
            self.machine.emit(self.world, (REVERSE_SHELL, words[0]))
        from lyma_server.executor.calls import execute

        execute(self.machine, self.world.fork(), tuple(words), plain=True)

    def _paths(self, arguments: list[str | list[str]]) -> list[str]:
        flat = [word for argument in arguments for word in (argument if isinstance(argument, list) else [argument])]
        return [self._home(word) for word in flat]

    def removes(self, _name: str, arguments: list[str | list[str]]) -> None:
        for path in self._paths(arguments):
            self._start("rm", "-rf", "--", path)

    def writes(self, _name: str, arguments: list[str | list[str]]) -> None:
        path, content = (*self._paths(arguments), UNKNOWN, UNKNOWN)[:2]
        self._start("tee", "--", path)
        self.machine.save(self.world, path, (content,))

    def reads(self, _name: str, arguments: list[str | list[str]]) -> None:
        paths = self._paths(arguments)
        writes = [path.lstrip("+<> ") for path in paths if path.startswith((">", "+<", "+>")) and len(path) > 2]
        modes = [path for path in paths if re.fullmatch(r"[<>+]{1,2}|[rwa]b?\+?b?", path)]
        mode = any(re.search(r"[>wa+]", path) for path in modes)
        paths = [path for path in paths if path not in modes]
        for path in writes:
            self._start("tee", "--", path)
        for path in paths[:2]:
            self._start("tee" if mode else "cat", "--", path.lstrip("< "))

    def moves(self, _name: str, arguments: list[str | list[str]]) -> None:
        self._start("mv", "--", *self._paths(arguments)[:2])

    def copies(self, _name: str, arguments: list[str | list[str]]) -> None:
        self._start("cp", "-r", "--", *self._paths(arguments)[:2])

    def links(self, _name: str, arguments: list[str | list[str]]) -> None:
        self._start("ln", "-s", "--", *self._paths(arguments)[:2])

    def modes(self, name: str, arguments: list[str | list[str]]) -> None:
        paths = self._paths(arguments)
        mode = next((word.lstrip("0o") or "0" for word in paths if re.fullmatch(r"0?o?[0-7]{3,5}", word)), "755")
        recursive = ("-R",) if name.endswith("_R") else ()
        for path in paths:
            if not re.fullmatch(r"0?o?[0-7]{3,5}", path):
                self._start("chmod", *recursive, mode, path)

    def kills(self, _name: str, arguments: list[str | list[str]]) -> None:
        words = self._paths(arguments)
        self._start("kill", "-9", "--", *(word for word in words if word.isdigit() and word != "9"))


_HANDLERS = (
    (RUNNERS, _Script.runs), (REMOVERS, _Script.removes), (WRITERS, _Script.writes), (READERS, _Script.reads), (MOVERS, _Script.moves),
    (COPIERS, _Script.copies), (LINKERS, _Script.links), (MODE_CHANGERS, _Script.modes), (frozenset({"kill"}), _Script.kills),
)  # fmt: skip
