"""What the calls of a Python program would do, as commands, and what they return."""

from __future__ import annotations

import base64
import binascii
import codecs
import posixpath
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from lyma_server.executor.languages.python_values import Name, Place, Value, subscript, text_of
from lyma_server.executor.marks import DECODED, NETWORK, SOMETHING, STAR, activate, blur, is_known

if TYPE_CHECKING:
    from lyma_server.executor.languages.python import Reader

Call: TypeAlias = Callable[["Reader", list[Value], dict[str, Value]], Value]
Method: TypeAlias = Callable[["Reader", Value, list[Value], dict[str, Value]], Value]

REVERSE_SHELL = "reverse shell"
"""The program name under which the rules know a shell on a socket."""

SPAWNS = frozenset({"os.fork", "os.forkpty", "subprocess.Popen", "multiprocessing.Process"})
ENDLESS = frozenset({"itertools.count", "itertools.repeat", "itertools.cycle", "iter"})
_SHELL_NAMES = ("sh", "bash", "zsh", "dash", "ksh")


def _first(arguments: list[Value]) -> str:
    return text_of(arguments[0]) if arguments else ""


def _spawned(reader: Reader, command: Value) -> None:
    """A command as a list of words or as text."""
    words = [text_of(word) for word in command] if isinstance(command, list) else None
    program = (words[0] if words else text_of(command)).split(" ")[0]
    if reader.connects and reader.duplicates and posixpath.basename(program) in _SHELL_NAMES:
        reader.machine.emit(reader.world, (REVERSE_SHELL, program))
    if words:
        from lyma_server.executor.calls import execute

        execute(reader.machine, reader.world.fork(), tuple(words), plain=True)
    elif words is None:
        reader.shell(text_of(command))


def _shell(reader: Reader, arguments: list[Value], named: dict[str, Value]) -> Value:
    command = arguments[0] if arguments else named.get("args", named.get("cmd"))
    if command is not None:
        _spawned(reader, command)
    return blur("")


def _exec_list(skip: int) -> Call:
    def call(reader: Reader, arguments: list[Value], _named: dict[str, Value]) -> Value:
        rest = arguments[skip:]
        words = rest[1] if len(rest) > 1 and isinstance(rest[1], list) else rest[1:]
        program = rest[0] if rest else None
        listed = words if isinstance(words, list) else [words]
        _spawned(reader, [program, *listed[1:]])
        return None

    return call


def _command(*words: str) -> Call:
    """A call that does what a command does to its arguments."""

    def call(reader: Reader, arguments: list[Value], named: dict[str, Value]) -> Value:
        values = arguments or list(named.values())
        reader.start(*words, *(text_of(value) for value in values[:2]))
        return None

    return call


def _on_first(*words: str) -> Call:
    def call(reader: Reader, arguments: list[Value], named: dict[str, Value]) -> Value:
        values = arguments or list(named.values())
        reader.start(*words, _first(values))
        return None

    return call


def _chmod(reader: Reader, arguments: list[Value], _named: dict[str, Value]) -> Value:
    mode = arguments[1] if len(arguments) > 1 else None
    reader.start("chmod", f"{mode:o}" if isinstance(mode, int) else text_of(mode), _first(arguments))
    return None


def _kill(reader: Reader, arguments: list[Value], _named: dict[str, Value]) -> Value:
    signal = text_of(arguments[1]) if len(arguments) > 1 else "TERM"
    reader.start("kill", f"-{signal}", "--", _first(arguments))
    return None


def _open(reader: Reader, arguments: list[Value], named: dict[str, Value]) -> Value:
    mode = text_of(arguments[1] if len(arguments) > 1 else named.get("mode", "r"))
    path = _first(arguments) if arguments else text_of(named.get("file"))
    writes = any(letter in mode for letter in "wax+")
    reader.start("tee" if writes else "cat", path)
    return Place(path)


def _evaluate(reader: Reader, arguments: list[Value], _named: dict[str, Value]) -> Value:
    if arguments:
        reader.program(text_of(arguments[0]))
    return None


def _module(_reader: Reader, arguments: list[Value], _named: dict[str, Value]) -> Value:
    return Name(_first(arguments))


def _get_attribute(_reader: Reader, arguments: list[Value], _named: dict[str, Value]) -> Value:
    owner, attribute = (*arguments, None, None)[:2]
    return Name(f"{owner.dotted}.{text_of(attribute)}") if isinstance(owner, Name) else None


def expand_user(reader: Reader, path: str) -> str:
    home = reader.world.home()[0]
    if path == "~" or path.startswith("~/"):
        return home + path[1:]
    if path.startswith("~"):
        return posixpath.dirname(reader.world.places.home) + "/" + path[1:]
    return path


def _text(change: Callable[[Reader, str], str]) -> Call:
    return lambda reader, arguments, _named: change(reader, _first(arguments))


def _variables(reader: Reader, path: str) -> str:
    import re

    return re.sub(r"\$\{?(\w+)\}?", lambda match: (reader.world.get(match.group(1)) or ("",))[0], path)


def _join(_reader: Reader, arguments: list[Value], _named: dict[str, Value]) -> Value:
    path = ""
    for part in map(text_of, arguments):
        path = part if part.startswith("/") or not path else f"{path.rstrip('/')}/{part}"
    return path


def _environment(reader: Reader, arguments: list[Value], _named: dict[str, Value]) -> Value:
    values = reader.world.get(_first(arguments))
    if values is None:
        return arguments[1] if len(arguments) > 1 else None
    return values[0]


def _list_folder(_reader: Reader, _arguments: list[Value], _named: dict[str, Value]) -> Value:
    return [STAR]


def _scan(_reader: Reader, arguments: list[Value], _named: dict[str, Value]) -> Value:
    return [Place(f"{(_first(arguments) or '.').rstrip('/')}/{STAR}")]


def _glob(_reader: Reader, arguments: list[Value], _named: dict[str, Value]) -> Value:
    return [activate(_first(arguments))]


def _walk(_reader: Reader, arguments: list[Value], _named: dict[str, Value]) -> Value:
    top = _first(arguments)
    return [[place, [STAR], [STAR]] for place in (top, f"{top.rstrip('/')}/{STAR}")]


def _path(_reader: Reader, arguments: list[Value], _named: dict[str, Value]) -> Value:
    return Place(text_of(_join(_reader, arguments, {})) or ".")


def _decoded(convert: Callable[[str], bytes]) -> Call:
    def call(_reader: Reader, arguments: list[Value], _named: dict[str, Value]) -> Value:
        text = _first(arguments)
        if not is_known(text):
            return DECODED
        try:
            return convert(text).decode("utf-8", "replace")
        except (ValueError, binascii.Error):
            return DECODED

    return call


def _codecs(_reader: Reader, arguments: list[Value], _named: dict[str, Value]) -> Value:
    text, name = _first(arguments), text_of(arguments[1]) if len(arguments) > 1 else "utf-8"
    if name.replace("_", "").lower() in ("rot13", "rot"):
        return codecs.decode(text, "rot13")
    convert = {"hex": bytes.fromhex, "base64": lambda plain: base64.b64decode(plain + "===")}.get(
        name.replace("_codec", "")
    )
    return _decoded(convert)(_reader, arguments, {}) if convert else text


def _fetch(reader: Reader, arguments: list[Value], named: dict[str, Value]) -> Value:
    """A request: what is sent counts as arguments of curl; what comes back is from the network."""
    sent = [text_of(value) for value in (*arguments, *named.values())]
    reader.machine.emit(reader.world, ("curl", *sent))
    return NETWORK


def _map(reader: Reader, arguments: list[Value], _named: dict[str, Value]) -> Value:
    if len(arguments) < 2:
        return None
    return [reader.call(arguments[0], [item], {}) for item in reader.items(arguments[1])]


def _characters(_reader: Reader, arguments: list[Value], _named: dict[str, Value]) -> Value:
    code = arguments[0] if arguments else None
    return chr(code) if isinstance(code, int) and 0 < code < 0x10FF00 else None


def _bytes(_reader: Reader, arguments: list[Value], _named: dict[str, Value]) -> Value:
    items = arguments[0] if arguments else None
    if isinstance(items, list):
        return "".join(chr(item) for item in items if isinstance(item, int) and 0 < item < 0x110000)
    return text_of(items)


def _reversed(reader: Reader, arguments: list[Value], _named: dict[str, Value]) -> Value:
    return list(reversed(reader.items(arguments[0]))) if arguments else None


def _range(_reader: Reader, arguments: list[Value], _named: dict[str, Value]) -> Value:
    numbers = [argument for argument in arguments if isinstance(argument, int)]
    return list(range(*numbers)[:64]) if 0 < len(numbers) == len(arguments) < 4 and 0 not in numbers[2:] else None


def _same(_reader: Reader, arguments: list[Value], _named: dict[str, Value]) -> Value:
    return arguments[0] if arguments else None


def _connect(reader: Reader, _arguments: list[Value], _named: dict[str, Value]) -> Value:
    reader.connects = True
    return None


def _duplicate(reader: Reader, _arguments: list[Value], _named: dict[str, Value]) -> Value:
    reader.duplicates = True
    return None


def _temporary(_reader: Reader, _arguments: list[Value], _named: dict[str, Value]) -> Value:
    return "/tmp/" + SOMETHING  # noqa: S108 - what the program would get, nothing is made there


_RUNS = ("os.system", "os.popen", "subprocess.run", "subprocess.call", "subprocess.check_call", "subprocess.check_output", "pty.spawn",
         "subprocess.Popen", "subprocess.getoutput", "subprocess.getstatusoutput", "commands.getoutput", "os.popen2", "os.popen3",
         "asyncio.create_subprocess_shell", "platform.popen", "pexpect.run", "pexpect.spawn", "plumbum.local", "invoke.run")  # fmt: skip
_FETCHES = ("urllib.request.urlopen", "urllib2.urlopen", "urllib.urlopen", "requests.get", "requests.post", "requests.put", "requests.request",
            "httpx.get", "httpx.post", "urllib.request.Request", "http.client.HTTPSConnection", "socket.create_connection")  # fmt: skip
_TEMPORARY = ("tempfile.mkdtemp", "tempfile.mkstemp", "tempfile.mktemp", "tempfile.TemporaryDirectory", "tempfile.NamedTemporaryFile",
              "tempfile.gettempdir")  # fmt: skip

CALLS: dict[str, Call] = {
    **dict.fromkeys(_RUNS, _shell), **dict.fromkeys(_FETCHES, _fetch), **dict.fromkeys(_TEMPORARY, _temporary),
    **{f"os.exec{suffix}": _exec_list(0) for suffix in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")},
    **{f"os.spawn{suffix}": _exec_list(1) for suffix in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")},
    "os.posix_spawn": _exec_list(0), "os.posix_spawnp": _exec_list(0),
    "asyncio.create_subprocess_exec": lambda reader, arguments, _: _spawned(reader, list(arguments)),
    "sh.rm": lambda reader, arguments, _: _spawned(reader, ["rm", *arguments]),
    "shutil.rmtree": _on_first("rm", "-rf", "--"), "send2trash.send2trash": _on_first("rm", "-rf", "--"), "os.remove": _on_first("rm", "-f", "--"),
    "os.unlink": _on_first("rm", "-f", "--"), "os.rmdir": _on_first("rm", "-rf", "--"), "os.removedirs": _on_first("rm", "-rf", "--"),
    "os.truncate": _on_first("tee"), "os.rename": _command("mv", "--"), "os.renames": _command("mv", "--"), "os.replace": _command("mv", "--"),
    "shutil.move": _command("mv", "--"), "shutil.copy": _command("cp", "--"), "shutil.copy2": _command("cp", "--"),
    "shutil.copyfile": _command("cp", "--"), "shutil.copytree": _command("cp", "-r", "--"), "os.symlink": _command("ln", "-s", "--"),
    "os.link": _command("ln", "--"), "os.chmod": _chmod, "os.chown": _on_first("chown", "x", "--"), "os.kill": _kill, "os.killpg": _kill,
    "open": _open, "io.open": _open, "codecs.open": _open, "exec": _evaluate, "eval": _evaluate, "compile": _same,
    "os.open": lambda reader, arguments, _: _open(reader, [*arguments[:1], "r+" if len(arguments) > 1 else "r"], {}),
    "__import__": _module, "importlib.import_module": _module, "getattr": _get_attribute,
    "os.path.expanduser": _text(expand_user), "os.path.expandvars": _text(_variables), "os.path.abspath": _text(lambda _, text: text),
    "os.path.realpath": _text(lambda _, text: text), "os.path.normpath": _text(lambda _, text: text),
    "os.path.dirname": _text(lambda _, text: posixpath.dirname(text)), "os.path.basename": _text(lambda _, text: posixpath.basename(text)),
    "os.path.join": _join, "posixpath.join": _join, "os.getenv": _environment, "os.environ.get": _environment,
    "os.getcwd": lambda reader, _a, _n: reader.world.cwd[0], "os.listdir": _list_folder, "os.scandir": _scan, "glob.glob": _glob,
    "glob.iglob": _glob, "os.walk": _walk, "os.chdir": lambda reader, arguments, _: setattr(reader.world, "cwd", (reader.world.locate(_first(arguments)),)),
    "pathlib.Path": _path, "pathlib.PurePath": _path, "pathlib.PosixPath": _path, "pathlib.Path.home": lambda reader, _a, _n: Place(reader.world.home()[0]),
    "pathlib.Path.cwd": lambda reader, _a, _n: Place(reader.world.cwd[0]), "attribute os.sep": lambda _r, _a, _n: "/",
    "base64.b64decode": _decoded(lambda text: base64.b64decode(text + "===")), "base64.decodebytes": _decoded(lambda text: base64.b64decode(text + "===")),
    "base64.b32decode": _decoded(base64.b32decode), "base64.b16decode": _decoded(bytes.fromhex),
    "base64.urlsafe_b64decode": _decoded(lambda text: base64.urlsafe_b64decode(text + "===")), "bytes.fromhex": _decoded(bytes.fromhex),
    "bytearray.fromhex": _decoded(bytes.fromhex), "binascii.unhexlify": _decoded(bytes.fromhex), "binascii.a2b_base64": _decoded(base64.b64decode),
    "codecs.decode": _codecs, "zlib.decompress": lambda _r, _a, _n: DECODED, "marshal.loads": lambda _r, _a, _n: DECODED,
    "chr": _characters, "str": lambda _r, arguments, _n: text_of(arguments[0]) if arguments else "", "bytes": _bytes, "bytearray": _bytes,
    "map": _map, "list": lambda reader, arguments, _: reader.items(arguments[0]) if arguments else [], "reversed": _reversed,
    "tuple": _same, "sorted": _same, "set": _same, "iter": _same, "range": _range, "ord": lambda _r, arguments, _n: ord(_first(arguments)[:1] or " "),
    "int": lambda _r, arguments, _n: int(_first(arguments)) if _first(arguments).isdecimal() else None,
    "socket.socket": _connect, "os.dup2": _duplicate, "ctypes.CDLL": lambda _r, _a, _n: Name("os"), "ctypes.cdll.LoadLibrary": lambda _r, _a, _n: Name("os"),
    "dict": lambda _r, arguments, _n: arguments[0] if arguments else None,
    "json.dumps": lambda _r, arguments, _n: text_of(arguments[0]) if arguments else None, "repr": lambda _r, arguments, _n: _first(arguments),
    "Path": _path, "Path.home": lambda reader, _a, _n: Place(reader.world.home()[0]), "rmtree": _on_first("rm", "-rf", "--"),
}  # fmt: skip


def _string(change: Callable[[str, list[str]], str]) -> Method:
    def method(_reader: Reader, owner: Value, arguments: list[Value], _named: dict[str, Value]) -> Value:
        if isinstance(owner, str | bytes | Place):
            return change(text_of(owner), [text_of(argument) for argument in arguments])
        return None

    return method


def _join_text(reader: Reader, owner: Value, arguments: list[Value], _named: dict[str, Value]) -> Value:
    return text_of(owner).join(text_of(item) for item in reader.items(arguments[0])) if arguments else None


def _format_text(_reader: Reader, owner: Value, arguments: list[Value], named: dict[str, Value]) -> Value:
    import re

    values = iter(arguments)

    def fill(match: re.Match[str]) -> str:
        name = match.group(1)
        if name.isdecimal():
            return text_of(subscript(arguments, int(name)))
        return text_of(named.get(name)) if name else text_of(next(values, None))

    return re.sub(r"\{(\w*)[^{}]*\}", fill, text_of(owner))


def _split(_reader: Reader, owner: Value, arguments: list[Value], _named: dict[str, Value]) -> Value:
    separator = _first(arguments) or None
    return list(text_of(owner).split(separator)) if isinstance(owner, str | bytes) else None


def _on_place(call: Call) -> Method:
    """A method of a path as the call that does the same."""

    def method(reader: Reader, owner: Value, arguments: list[Value], named: dict[str, Value]) -> Value:
        return call(reader, [owner, *arguments], named) if isinstance(owner, Place | str) else None

    return method


def _write_into(reader: Reader, owner: Value, arguments: list[Value], _named: dict[str, Value]) -> Value:
    """Text written to a file is remembered, since the file may be run."""
    if isinstance(owner, Place):
        reader.start("tee", owner.text)
        reader.machine.save(reader.world, owner.text, (_first(arguments),))
    return None


def _find(_reader: Reader, owner: Value, arguments: list[Value], _named: dict[str, Value]) -> Value:
    if not isinstance(owner, Place):
        return None
    from lyma_server.executor.searching import found_paths

    pattern = _first(arguments)
    return [
        Place(path)
        for path in found_paths(owner.text, None if pattern in ("*", "**", "**/*") else pattern)
        if path != owner.text
    ]


def _iterate(_reader: Reader, owner: Value, _arguments: list[Value], _named: dict[str, Value]) -> Value:
    return [Place(f"{owner.text.rstrip('/')}/{STAR}")] if isinstance(owner, Place) else None


def _contents(reader: Reader, owner: Value, _arguments: list[Value], _named: dict[str, Value]) -> Value:
    """`.read()`: of a path its text, of a response what it is."""
    if isinstance(owner, Place):
        reader.start("cat", owner.text)
        return (reader.world.read(owner.text) or (blur(""),))[0]
    return owner


def _owner(_reader: Reader, owner: Value, _arguments: list[Value], _named: dict[str, Value]) -> Value:
    return owner


def _connected(reader: Reader, _owner: Value, _arguments: list[Value], _named: dict[str, Value]) -> Value:
    reader.connects = True
    return None


METHODS: dict[str, Method] = {
    "join": _join_text, "format": _format_text, "split": _split, "encode": _owner, "decode": _owner, "strip": _owner, "resolve": _owner,
    "absolute": _owner, "rstrip": _owner, "lstrip": _owner, "copy": _owner, "items": _owner, "values": _owner, "connect": _connected,
    "lower": _string(lambda text, _: text.lower()), "upper": _string(lambda text, _: text.upper()),
    "replace": lambda reader, owner, arguments, named: CALLS["os.rename"](reader, [owner, *arguments], named) if isinstance(owner, Place)
    else _string(lambda text, words: text.replace(words[0], words[1]) if len(words) > 1 else text)(reader, owner, arguments, named),
    "write": _write_into, "write_text": _write_into, "write_bytes": _write_into, "writelines": _write_into,
    "rename": _on_place(_command("mv", "--")), "unlink": _on_place(_on_first("rm", "-f", "--")), "rmdir": _on_place(_on_first("rm", "-rf", "--")),
    "rmtree": _on_place(_on_first("rm", "-rf", "--")),
    "touch": _on_place(_on_first("touch")), "open": _on_place(_open), "read_text": _contents, "read_bytes": _contents, "read": _contents,
    "chmod": _on_place(_chmod), "symlink_to": lambda reader, owner, arguments, _: reader.start("ln", "-s", "--", _first(arguments), text_of(owner)),
    "glob": _find, "rglob": _find, "iterdir": _iterate, "expanduser": lambda reader, owner, _a, _n: Place(expand_user(reader, text_of(owner))),
    "joinpath": lambda reader, owner, arguments, _: Place(text_of(_join(reader, [owner, *arguments], {}))),
    "getvalue": _owner, "json": _owner, "readlines": _contents, "with_suffix": lambda _r, owner, _a, _n: Place(text_of(owner) + SOMETHING),
}  # fmt: skip
