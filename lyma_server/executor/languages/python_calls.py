"""What the calls of a Python program would do, as commands, and what they return."""

from __future__ import annotations

import base64
import binascii
import codecs
import posixpath
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from lyma_server.executor.languages.python_values import Name, Place, Value, text_of
from lyma_server.executor.marks import DECODED, NETWORK, SOMETHING, STAR, activate, blur, is_known

if TYPE_CHECKING:
    from lyma_server.executor.languages.python import Reader

Call: TypeAlias = Callable[["Reader", list[Value], dict[str, Value]], Value]

REVERSE_SHELL = "reverse shell"
"""The program name under which the rules know a shell on a socket."""

SPAWNS = frozenset({"os.fork", "os.forkpty", "subprocess.Popen", "multiprocessing.Process"})
ENDLESS = frozenset({"itertools.count", "itertools.repeat", "itertools.cycle", "iter"})
_SHELL_NAMES = ("sh", "bash", "zsh", "dash", "ksh")


def first_text(arguments: list[Value]) -> str:
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


def as_command(*words: str) -> Call:
    """A call that does what a command does to its arguments."""

    def call(reader: Reader, arguments: list[Value], named: dict[str, Value]) -> Value:
        values = arguments or list(named.values())
        reader.start(*words, *(text_of(value) for value in values[:2]))
        return None

    return call


def on_first(*words: str) -> Call:
    def call(reader: Reader, arguments: list[Value], named: dict[str, Value]) -> Value:
        values = arguments or list(named.values())
        reader.start(*words, first_text(values))
        return None

    return call


def change_mode(reader: Reader, arguments: list[Value], _named: dict[str, Value]) -> Value:
    mode = arguments[1] if len(arguments) > 1 else None
    reader.start("chmod", f"{mode:o}" if isinstance(mode, int) else text_of(mode), first_text(arguments))
    return None


def _kill(reader: Reader, arguments: list[Value], _named: dict[str, Value]) -> Value:
    signal = text_of(arguments[1]) if len(arguments) > 1 else "TERM"
    reader.start("kill", f"-{signal}", "--", first_text(arguments))
    return None


def open_file(reader: Reader, arguments: list[Value], named: dict[str, Value]) -> Value:
    mode = text_of(arguments[1] if len(arguments) > 1 else named.get("mode", "r"))
    path = first_text(arguments) if arguments else text_of(named.get("file"))
    writes = any(letter in mode for letter in "wax+")
    reader.start("tee" if writes else "cat", path)
    return Place(path)


def _evaluate(reader: Reader, arguments: list[Value], _named: dict[str, Value]) -> Value:
    if arguments:
        reader.program(text_of(arguments[0]))
    return None


def _module(_reader: Reader, arguments: list[Value], _named: dict[str, Value]) -> Value:
    return Name(first_text(arguments))


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
    return lambda reader, arguments, _named: change(reader, first_text(arguments))


def _variables(reader: Reader, path: str) -> str:
    import re

    return re.sub(r"\$\{?(\w+)\}?", lambda match: (reader.world.get(match.group(1)) or ("",))[0], path)


def join_paths(_reader: Reader, arguments: list[Value], _named: dict[str, Value]) -> Value:
    path = ""
    for part in map(text_of, arguments):
        path = part if part.startswith("/") or not path else f"{path.rstrip('/')}/{part}"
    return path


def _environment(reader: Reader, arguments: list[Value], _named: dict[str, Value]) -> Value:
    values = reader.world.get(first_text(arguments))
    if values is None:
        return arguments[1] if len(arguments) > 1 else None
    return values[0]


def _list_folder(_reader: Reader, _arguments: list[Value], _named: dict[str, Value]) -> Value:
    return [STAR]


def _scan(_reader: Reader, arguments: list[Value], _named: dict[str, Value]) -> Value:
    return [Place(f"{(first_text(arguments) or '.').rstrip('/')}/{STAR}")]


def _glob(_reader: Reader, arguments: list[Value], _named: dict[str, Value]) -> Value:
    return [activate(first_text(arguments))]


def _walk(_reader: Reader, arguments: list[Value], _named: dict[str, Value]) -> Value:
    top = first_text(arguments)
    return [[place, [STAR], [STAR]] for place in (top, f"{top.rstrip('/')}/{STAR}")]


def _path(_reader: Reader, arguments: list[Value], _named: dict[str, Value]) -> Value:
    return Place(text_of(join_paths(_reader, arguments, {})) or ".")


def _decoded(convert: Callable[[str], bytes]) -> Call:
    def call(_reader: Reader, arguments: list[Value], _named: dict[str, Value]) -> Value:
        text = first_text(arguments)
        if not is_known(text):
            return DECODED
        try:
            return convert(text).decode("utf-8", "replace")
        except (ValueError, binascii.Error):
            return DECODED

    return call


def _codecs(_reader: Reader, arguments: list[Value], _named: dict[str, Value]) -> Value:
    text, name = first_text(arguments), text_of(arguments[1]) if len(arguments) > 1 else "utf-8"
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


def _standard_input(reader: Reader, _arguments: list[Value], _named: dict[str, Value]) -> Value:
    return "".join(reader.world.stdin)


def _duplicate(reader: Reader, _arguments: list[Value], _named: dict[str, Value]) -> Value:
    reader.duplicates = True
    return None


def _temporary(_reader: Reader, _arguments: list[Value], _named: dict[str, Value]) -> Value:
    return "/tmp/" + SOMETHING  # noqa: S108 - what the program would get, nothing is made there


_RUNS = ("os.system", "os.popen", "subprocess.run", "subprocess.call", "subprocess.check_call", "subprocess.check_output", "pty.spawn",
         "subprocess.Popen", "subprocess.getoutput", "subprocess.getstatusoutput", "commands.getoutput", "os.popen2", "os.popen3",
         "asyncio.create_subprocess_shell", "platform.popen", "pexpect.run", "pexpect.spawn", "plumbum.local", "invoke.run")  # fmt: skip
_FETCHES = ("urllib.request.urlopen", "urllib2.urlopen", "urllib.urlopen", "requests.get", "requests.post", "requests.put", "requests.request",
            "httpx.get", "httpx.post", "urllib.request.Request", "http.client.HTTPSConnection")  # fmt: skip
_TEMPORARY = ("tempfile.mkdtemp", "tempfile.mkstemp", "tempfile.mktemp", "tempfile.TemporaryDirectory", "tempfile.NamedTemporaryFile",
              "tempfile.gettempdir")  # fmt: skip

CALLS: dict[str, Call] = {
    **dict.fromkeys(_RUNS, _shell), **dict.fromkeys(_FETCHES, _fetch), **dict.fromkeys(_TEMPORARY, _temporary),
    **{f"os.exec{suffix}": _exec_list(0) for suffix in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")},
    **{f"os.spawn{suffix}": _exec_list(1) for suffix in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")},
    "os.posix_spawn": _exec_list(0), "os.posix_spawnp": _exec_list(0),
    "asyncio.create_subprocess_exec": lambda reader, arguments, _: _spawned(reader, list(arguments)),
    "sh.rm": lambda reader, arguments, _: _spawned(reader, ["rm", *arguments]),
    "shutil.rmtree": on_first("rm", "-rf", "--"), "send2trash.send2trash": on_first("rm", "-rf", "--"), "os.remove": on_first("rm", "-f", "--"),
    "os.unlink": on_first("rm", "-f", "--"), "os.rmdir": on_first("rm", "-rf", "--"), "os.removedirs": on_first("rm", "-rf", "--"),
    "os.truncate": on_first("tee"), "os.rename": as_command("mv", "--"), "os.renames": as_command("mv", "--"), "os.replace": as_command("mv", "--"),
    "shutil.move": as_command("mv", "--"), "shutil.copy": as_command("cp", "--"), "shutil.copy2": as_command("cp", "--"),
    "shutil.copyfile": as_command("cp", "--"), "shutil.copytree": as_command("cp", "-r", "--"), "os.symlink": as_command("ln", "-s", "--"),
    "os.link": as_command("ln", "--"), "os.chmod": change_mode, "os.chown": on_first("chown", "x", "--"), "os.kill": _kill, "os.killpg": _kill,
    "open": open_file, "io.open": open_file, "codecs.open": open_file, "exec": _evaluate, "eval": _evaluate, "compile": _same,
    "os.open": lambda reader, arguments, _: open_file(reader, [*arguments[:1], "r+" if len(arguments) > 1 else "r"], {}),
    "__import__": _module, "importlib.import_module": _module, "getattr": _get_attribute,
    "os.path.expanduser": _text(expand_user), "os.path.expandvars": _text(_variables), "os.path.abspath": _text(lambda _, text: text),
    "os.path.realpath": _text(lambda _, text: text), "os.path.normpath": _text(lambda _, text: text),
    "os.path.dirname": _text(lambda _, text: posixpath.dirname(text)), "os.path.basename": _text(lambda _, text: posixpath.basename(text)),
    "os.path.join": join_paths, "posixpath.join": join_paths, "os.getenv": _environment, "os.environ.get": _environment,
    "os.getcwd": lambda reader, _a, _n: reader.world.cwd[0], "os.listdir": _list_folder, "os.scandir": _scan, "glob.glob": _glob,
    "glob.iglob": _glob, "os.walk": _walk, "os.chdir": lambda reader, arguments, _: setattr(reader.world, "cwd", (reader.world.locate(first_text(arguments)),)),
    "pathlib.Path": _path, "pathlib.PurePath": _path, "pathlib.PosixPath": _path, "pathlib.Path.home": lambda reader, _a, _n: Place(reader.world.home()[0]),
    "pathlib.Path.cwd": lambda reader, _a, _n: Place(reader.world.cwd[0]), "attribute os.sep": lambda _r, _a, _n: "/",
    "base64.b64decode": _decoded(lambda text: base64.b64decode(text + "===")), "base64.decodebytes": _decoded(lambda text: base64.b64decode(text + "===")),
    "base64.b32decode": _decoded(base64.b32decode), "base64.b16decode": _decoded(bytes.fromhex),
    "base64.urlsafe_b64decode": _decoded(lambda text: base64.urlsafe_b64decode(text + "===")), "bytes.fromhex": _decoded(bytes.fromhex),
    "bytearray.fromhex": _decoded(bytes.fromhex), "binascii.unhexlify": _decoded(bytes.fromhex), "binascii.a2b_base64": _decoded(base64.b64decode),
    "codecs.decode": _codecs, "zlib.decompress": lambda _r, _a, _n: DECODED, "marshal.loads": lambda _r, _a, _n: DECODED,
    "chr": _characters, "str": lambda _r, arguments, _n: text_of(arguments[0]) if arguments else "", "bytes": _bytes, "bytearray": _bytes,
    "map": _map, "list": lambda reader, arguments, _: reader.items(arguments[0]) if arguments else [], "reversed": _reversed,
    "tuple": _same, "sorted": _same, "set": _same, "iter": _same, "range": _range, "ord": lambda _r, arguments, _n: ord(first_text(arguments)[:1] or " "),
    "int": lambda _r, arguments, _n: int(first_text(arguments)) if first_text(arguments).isdecimal() else None,
    "sys.stdin.read": _standard_input, "sys.stdin.readline": _standard_input, "sys.stdin.buffer.read": _standard_input, "input": _standard_input,
    "socket.socket": _connect, "socket.create_connection": _connect, "os.dup2": _duplicate, "ctypes.CDLL": lambda _r, _a, _n: Name("os"), "ctypes.cdll.LoadLibrary": lambda _r, _a, _n: Name("os"),
    "shlex.split": lambda _r, arguments, _n: list(first_text(arguments).split()), "dict": lambda _r, arguments, _n: arguments[0] if arguments else None,
    "json.dumps": lambda _r, arguments, _n: text_of(arguments[0]) if arguments else None, "repr": lambda _r, arguments, _n: first_text(arguments),
    "Path": _path, "Path.home": lambda reader, _a, _n: Place(reader.world.home()[0]), "rmtree": on_first("rm", "-rf", "--"),
}  # fmt: skip
