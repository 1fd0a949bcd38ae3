"""JavaScript, Perl, Ruby, PHP, Lua and their like: calls with texts, found without a grammar of each."""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING

from lyma_server.executor.escapes import decode_ansi
from lyma_server.executor.forks import FORK_BOMB
from lyma_server.executor.languages.python_calls import REVERSE_SHELL
from lyma_server.executor.marks import ENVIRONMENT, UNKNOWN, activate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lyma_server.executor.evaluation import Machine
    from lyma_server.executor.world import World

_HOME = re.compile(
    r"(?:require\(['\"](?:node:)?os['\"]\)\.|\bos\.)?homedir\(\)|process\.env\.HOME\b|process\.env\[['\"]HOME['\"]\]|ENV\[['\"]HOME['\"]\]"
    r"|ENV\.fetch\(['\"]HOME['\"]\)|\$ENV\{['\"]?HOME['\"]?\}|Dir\.home|(?:os\.)?getenv\(['\"]HOME['\"]\)|\$_(?:SERVER|ENV)\[['\"]HOME['\"]\]"
    r"|Deno\.env\.get\(['\"]HOME['\"]\)|\$env\(HOME\)|\$::env\(HOME\)|(?:File|path)\.expand_path\(['\"]~['\"]\)|homedir\b(?!\()|path\.expand\(['\"]~['\"]\)"
)
_CWD = re.compile(r"process\.cwd\(\)|Dir\.pwd|\bgetcwd\(\)|\b__dirname\b|Deno\.cwd\(\)")
_TOKEN = re.compile(
    r"(?P<comment>/\*.*?\*/|(?<![:'\"\\])//[^\n]*)|(?P<string>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')|(?P<back>`(?:[^`\\]|\\.)*`)"
    r"|(?P<quote>(?:qx|%x|qq|q|%q|%Q|%w|qw)\s*(?:\{[^{}]*\}|\([^()]*\)|\[[^\[\]]*\]|/[^/]*/|\|[^|]*\|))"
    r"|(?P<name>[$@%]?[A-Za-z_][\w$]*(?:(?:\.|::|->|\?\.)[A-Za-z_$][\w$]*[!?]?)*)|(?P<number>0o?[0-7]+|\d+)|(?P<other>\S)|(?P<space>\s+)",
    re.DOTALL,
)
_LISPS = frozenset({"emacs", "guile", "sbcl", "clisp", "racket"})
_LISP_TOKEN = re.compile(
    r"(?P<comment>;[^\n]*)|(?P<string>\"(?:[^\"\\]|\\.)*\")|(?P<name>[A-Za-z_*][\w*!?/+-]*)|(?P<number>\d+)|(?P<other>\S)|(?P<space>\s+)"
)
_RUNS = frozenset(
    {"system", "exec", "execSync", "spawn", "spawnSync", "execFile", "execFileSync", "popen", "popen2", "popen2e", "popen3", "capture2",
     "capture2e", "capture3", "shell_exec", "passthru", "proc_open", "pcntl_exec", "execute", "run", "pipeline", "getoutput", "sh",
     "shell-command", "call-process", "shell-command-to-string", "start-process", "fork_exec", "Command", "rmtree_cmd", "shell", "execvp",
     "execv", "execl", "execlp", "system2", "exec_cmd", "execa", "command", "cmd"}
)  # fmt: skip
_REMOVES = frozenset(
    {"rmSync", "rm", "rmdirSync", "rmdir", "unlinkSync", "unlink", "rimraf", "rimrafSync", "removeSync", "remove", "emptyDirSync", "emptyDir",
     "rm_rf", "rm_r", "rm_f", "remove_dir", "remove_entry", "remove_entry_secure", "rmtree", "remove_tree", "remove_dir_all", "deleteFile",
     "delete-directory", "delete-file", "delete_tree", "unlink_recursive", "deltree", "rmtree_all", "trash", "del"}
)  # fmt: skip
_DELETES = re.compile(
    r"^(?:File|Dir|FileUtils|Pathname|fs|Files?|Storage|FileSystem)(?:\.|::|->)(?:delete|deleteDir|deleteTree|unlink)$"
)
_WRITES = frozenset({"writeFileSync", "writeFile", "appendFileSync", "appendFile", "createWriteStream", "file_put_contents", "binwrite",
                     "write", "outputFile", "outputFileSync", "truncateSync", "openSync"})  # fmt: skip
_READS = frozenset({"readFileSync", "readFile", "createReadStream", "file_get_contents", "readfile", "slurp", "binread", "readlines",
                    "readTextFile", "readTextFileSync", "read", "fopen", "open"})  # fmt: skip
_MOVES = frozenset({"renameSync", "rename", "mv", "move", "moveSync"})
_MODES = frozenset({"chmodSync", "chmod", "chmod_R", "chown_R", "chownSync", "lchown"})
_COPIES = frozenset({"copyFileSync", "copyFile", "cpSync", "cp", "cp_r", "copy"})
_LINKS = frozenset({"symlinkSync", "symlink", "ln_s", "ln_sf"})
_BOMB = re.compile(
    r"\bfork\b[\s(){};]*(?:\bwhile\b|\buntil\b)|\b(?:while|until|loop|for)\b[^;\n]{0,30}[\s({]*(?:;;[\s)]*)?[\s{(]*\b(?:pcntl_)?fork\b|while\s*\(\s*(?:1|true)\s*\)[^}]{0,80}\b(?:spawn|fork|exec)\w*\s*\("
)
_SOCKET = re.compile(
    r"TCPSocket|IO::Socket|INET\b|net\.(?:connect|Socket|createConnection)|fsockopen|socket\.connect|socket\s*\(|require\s*\(?\s*['\"]socket|:connect\s*\(|stream_socket_client|Socket\.tcp"
)
_SHELL_START = re.compile(r"^\s*(?:/usr)?(?:/bin/)?(?:ba|z|da|k)?sh\b(?!\s+-c\b|\S)")
_EVALUATED = re.compile(
    r"\.then\(\s*(?:eval|Function)\b|\b(?:eval|Function|instance_eval|load|loadstring|assert)\b[^;\n]*(?:https?://|\bfetch\s*\(|https?\.get|URI\.(?:open|parse)|open-uri|LWP|curl|file_get_contents\(['\"]http|Net::HTTP|axios)"
)


def read_script(machine: Machine, world: World, language: str, text: str) -> None:
    """Follow a program of one of these languages by the calls in it."""
    from lyma_server.executor.languages import UNSEEN_PROGRAM

    home, cwd = world.home()[0], world.cwd[0]
    ready = _CWD.sub(f'"{cwd}"', _HOME.sub(f'"{home}"', text))
    if _BOMB.search(ready):
        machine.emit(world, (FORK_BOMB,))
    if _EVALUATED.search(ready) or (_EVALUATES.search(ready) and _FETCHES.search(ready)):
        machine.emit(world, (language, text), program=UNSEEN_PROGRAM)
    if _WHOLE_ENVIRONMENT.search(ready) and _SENDS.search(ready):
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


_EVALUATES = re.compile(r"\beval\s*[(]|\bnew Function\s*\(|\binstance_eval\b|\bload(?:string)?\s*\(|\.then\(\s*eval\b")
_FETCHES = re.compile(
    r"\bfetch\s*\(|\bhttps?\b['\"]?\)?\.(?:get|request)|\baxios\b|URI\.open|Net::HTTP|LWP::|HTTP::Tiny|file_get_contents\(['\"]http|curl_exec|XMLHttpRequest"
)
_SENDS = re.compile(_FETCHES.pattern + r"|net\.connect|TCPSocket|IO::Socket|fsockopen|sendBeacon|dns\.")
_WHOLE_ENVIRONMENT = re.compile(
    r"process\.env\b(?![.\[])|\bENV\.(?:to_h|inspect|to_a|map|each)\b|%ENV\b|\bgetenv\(\s*\)|\$_ENV\b(?!\[)|Deno\.env\.toObject"
)
_HIDDEN = {character: chr(1 + index) for index, character in enumerate("$@#`")}
_SHOWN = {hidden: character for character, hidden in _HIDDEN.items()}


class _Script:
    def __init__(self, machine: Machine, world: World, text: str, language: str) -> None:
        self.machine, self.world, self.language = machine, world, language
        self.sockets = _SOCKET.search(text) is not None
        pattern = _LISP_TOKEN if language in _LISPS else _TOKEN
        self.tokens = [(match.lastgroup or "", match.group(0)) for match in pattern.finditer(text)]
        self.tokens = [token for token in self.tokens if token[0] not in ("space", "comment")]
        self.names: dict[str, str] = {}

    def read(self) -> None:
        self._learn_names()
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
        if _DELETES.match(name):
            short = "rm_rf"
        handler = next((handler for names, handler in _HANDLERS if short in names), None)
        if handler is None:
            return
        arguments = list(self._arguments(index + 1))
        if arguments:
            handler(self, short, arguments)

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
        if kind != "name" or index + 1 >= len(self.tokens) or self.tokens[index + 1][1] not in ("(", "["):
            return None, index
        short = re.split(r"\.|::|->", name)[-1]
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
        if self.sockets and _SHELL_START.match(text):
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
        if self.sockets and _SHELL_START.match(words[0]):
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
    (_RUNS, _Script.runs), (_REMOVES, _Script.removes), (_WRITES, _Script.writes), (_READS, _Script.reads), (_MOVES, _Script.moves),
    (_COPIES, _Script.copies), (_LINKS, _Script.links), (_MODES, _Script.modes), (frozenset({"kill"}), _Script.kills),
)  # fmt: skip
