"""What a program would do to files: removed, moved, written, read, given other modes. One row a program."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from lyma_server.executor import archives, searching
from lyma_server.executor.marks import STAR
from lyma_server.executor.options import Options, read_options

if TYPE_CHECKING:
    from lyma_server.executor.invocation import Invocation

Kind: TypeAlias = Literal[
    "remove", "remove tree", "move", "write", "append", "create", "fill", "mode", "mode tree", "read"
]
"""`fill` puts files into a folder whose names are not known here: an archive is unpacked, a tree is copied."""


class Effect(NamedTuple):
    """`text` is the argument as written, `paths` every absolute path that it may mean."""

    kind: Kind
    text: str
    paths: tuple[str, ...]


RSYNC_VALUES = ("-e", "--rsh", "--exclude", "--include", "--files-from", "--exclude-from", "-f", "--filter", "--port", "--chmod",
                "-B", "-T", "-M", "--temp-dir", "--log-file", "--password-file", "--bwlimit", "--timeout", "--max-size", "--min-size")  # fmt: skip
Found: TypeAlias = Iterator[tuple[Kind, str]]
Reader: TypeAlias = Callable[[tuple[str, ...]], Found]

NAMES_ONLY = frozenset(
    {"echo", "printf", "ls", "eza", "exa", "stat", "test", "[", "file", "du", "basename", "dirname", "realpath", "readlink", "which", "type",
     "ssh", "ssh-add", "ssh-keygen", "ssh-copy-id", "ssh-keyscan", "sftp", "git", "find", "fd", "cd", "pushd", "export", "declare", "command", "history", "man", "lyma",
     "namei", "tree", "mountpoint", "id", "getent", "locate", "alias", "eval", "exec", "sudo", "env", "timeout", "nohup", "docker", "podman",
     "systemctl", "kill", "pkill", "killall", "pgrep", "sh", "bash", "fork bomb", "unseen program", "reverse shell", "xargs", "df", "dash", "zsh",
     "docker-compose", "kubectl", "terraform", "ansible", "ansible-playbook", "vagrant", "mosh", "autossh"}
)  # fmt: skip
"""These do not hand on what stands in the files that they name (an identity file of ssh is used, not shown)."""


def find_effects(invocation: Invocation, *, reads: bool = True) -> tuple[Effect, ...]:
    """Everything that `invocation` would do to files; without `reads` what an ordinary program names is not looked at."""
    scene = invocation.scene
    if not invocation.program and invocation.redirections:
        found: Found = (_redirected(r.target, writes=r.writes) for r in invocation.redirections)
    else:
        found = _of_program(invocation, reads=reads)
    return tuple(Effect(_deepened(kind, text), text, scene.places(text)) for kind, text in found if text)


def _deepened(kind: Kind, text: str) -> Kind:
    """One by one over a whole tree is the same as the tree at once."""
    if not text.endswith(searching.EVERYTHING_BELOW):
        return kind
    return {"remove": "remove tree", "mode": "mode tree"}.get(kind, kind)  # type: ignore[return-value]


def _redirected(target: str, *, writes: bool) -> tuple[Kind, str]:
    return ("write" if writes else "read", target)


def _of_program(invocation: Invocation, *, reads: bool) -> Found:
    name = invocation.program
    if name == "git":
        yield from _git(invocation.arguments, invocation.environment.get("GIT_WORK_TREE", ()))
        return
    reader = _ROWS.get(name) or (_mkfs if name.startswith("mkfs") else None)
    if reader is not None:
        yield from reader(invocation.arguments)
    elif reads and name not in NAMES_ONLY:
        yield from dict.fromkeys(_read_all(invocation.arguments))


def _read_all(arguments: tuple[str, ...]) -> Found:
    """Any other program may read whatever it names: operands, `--file=path`, `-d@path`, `if=path`."""
    for word in arguments:
        for part in (
            re.split(r"[=,]|(?<=[=,])|@|^-[a-zA-Z](?=[~/.])", word)
            if not word.startswith(("/", "./", "~"))
            else (word,)
        ):
            if "/" in part or part.startswith("."):
                yield "read", part.split(":", 1)[1] if re.match(r"^\w[\w.-]*:[~/.]", part) else part
        if word[:1] not in ("-", ""):
            yield "read", word


def _rm(arguments: tuple[str, ...], *, always: bool = False) -> Found:
    options = read_options(arguments, ("--interactive", "-I") if always else ())
    tree = always or options.has("-r", "-R", "--recursive")
    for operand in options.operands:
        yield ("remove tree" if tree else "remove"), operand


def _rmdir(arguments: tuple[str, ...]) -> Found:
    """Only what is empty goes: one by one over a tree, its files stay."""
    for operand in read_options(arguments).operands:
        yield "remove", operand.removesuffix(searching.EVERYTHING_BELOW) or "/"


_CMAKE_TOOLS: dict[str, tuple[str, ...]] = {
    "rm": (), "remove": ("-rf",), "remove_directory": ("-rf",), "remove_directories": ("-rf",),
}  # fmt: skip


def _cmake(arguments: tuple[str, ...]) -> Found:
    """`cmake -E rm -rf build`: it deletes by itself, without starting a program."""
    if arguments[:1] == ("-E",) and arguments[1:2] and arguments[1] in _CMAKE_TOOLS:
        yield from _rm((*_CMAKE_TOOLS[arguments[1]], *arguments[2:]))
    else:
        yield from _read_all(arguments)


def _rclone(arguments: tuple[str, ...]) -> Found:
    """Deletions by rclone in a folder of this machine; what it copies or moves, it reads."""
    operands = read_options(arguments).operands
    if operands[:1] in (("purge",), ("delete",), ("rmdirs",)):
        yield from _rm(operands[1:], always=True)
    else:
        yield from _read_all(arguments)


def _shred(arguments: tuple[str, ...]) -> Found:
    options = read_options(arguments, ("-n", "-s", "--iterations", "--size", "--random-source"))
    for operand in options.operands:
        yield "remove", operand
        yield "write", operand


def _mv(arguments: tuple[str, ...]) -> Found:
    for source, target in _transfer(read_options(arguments, ("-t", "-S", "--target-directory", "--suffix"))):
        yield ("move", source) if source else ("write", target)


def _transfer(options: Options) -> Iterator[tuple[str, str]]:
    """Sources, then the target under an empty source; a target folder is also named with each file in it."""
    folder = options.value("-t", "--target-directory")
    operands = options.operands
    if folder is None and len(operands) < 2:
        yield from ((source, "") for source in operands)
        return
    sources, target = (operands, folder) if folder is not None else (operands[:-1], operands[-1])
    yield from ((source, "") for source in sources)
    yield "", target
    yield from (("", f"{target.rstrip('/')}/{source.rstrip('/').rsplit('/', 1)[-1]}") for source in sources)


def _cp(arguments: tuple[str, ...]) -> Found:
    values = ("-t", "-S", "--target-directory", "--suffix", "-m", "--mode", "-o", "-g", "--owner", "--group")
    options = read_options(arguments, values)
    for source, target in _transfer(options):
        yield ("read", source) if source else ("write", target)
    if options.has("-r", "-R", "-a", "--recursive", "--archive"):
        yield from _filled(options, "/.")


def _filled(options: Options, ending: str) -> Found:
    """The target of a copy, where a source with this ending stands for all that lies in it."""
    folder = options.value("-t", "--target-directory")
    sources, target = (options.operands, folder) if folder else (options.operands[:-1], options.operands[-1:])
    if any(source.endswith(ending) for source in sources):
        yield "fill", "".join(target)


def _scp(arguments: tuple[str, ...]) -> Found:
    options = read_options(arguments, ("-i", "-P", "-F", "-o", "-J", "-c", "-l", "-S", "-D", "-X"))
    for source, target in _transfer(options):
        yield ("read", source) if source else ("write", target)


def _rsync(arguments: tuple[str, ...]) -> Found:
    options = read_options(arguments, RSYNC_VALUES)
    for source, target in _transfer(options):
        yield ("read", source) if source else ("write", target)
    if any(flag.startswith("--del") for flag in options.flags) and len(options.operands) > 1:
        target = options.operands[-1]
        yield "remove tree", f"{target.split(':', 1)[-1].rstrip('/')}/{STAR}"
    if options.has("--remove-source-files"):
        for source in options.operands[:-1]:
            yield "move", source
    yield from _filled(options, "/")


def _dd(arguments: tuple[str, ...]) -> Found:
    for word in arguments:
        name, _, value = word.partition("=")
        if name == "of":
            yield "write", value
        elif name == "if":
            yield "read", value


def _operands(kind: Kind, *values: str) -> Reader:
    def read(arguments: tuple[str, ...]) -> Found:
        for operand in read_options(arguments, values).operands:
            yield kind, operand

    return read


def _tee(arguments: tuple[str, ...]) -> Found:
    options = read_options(arguments)
    for operand in options.operands:
        yield ("append" if options.has("-a", "--append") else "write"), operand


def _mode(
    arguments: tuple[str, ...], *, first_is_mode: bool = True, values: tuple[str, ...] = ("--reference", "--from")
) -> Found:
    words = tuple(word for word in arguments if not re.fullmatch(r"-[rwxXst]+", word)) if first_is_mode else arguments
    options = read_options(words, values)
    skips = first_is_mode and len(words) == len(arguments) and not options.value("--reference")
    for operand in options.operands[1:] if skips else options.operands:
        yield ("mode tree" if options.has("-R", "--recursive") else "mode"), operand


def _chattr(arguments: tuple[str, ...]) -> Found:
    tree = "-R" in arguments
    for word in arguments:
        if word[:1] not in "-+=":
            yield ("mode tree" if tree else "mode"), word


def _in_place(script_options: tuple[str, ...]) -> Reader:
    """`sed -i`, `perl -i`: operands after the script are rewritten; otherwise they are read."""

    def read(arguments: tuple[str, ...]) -> Found:
        options = read_options(arguments, script_options)
        writes = any(re.match(r"^-[a-zA-Z]*i|^--in-place", word) for word in arguments)
        scripted = bool(options.all_values(*script_options))
        for operand in options.operands if scripted else options.operands[1:]:
            yield ("write" if writes else "read"), operand

    return read


def _curl(arguments: tuple[str, ...]) -> Found:
    values = ("-o", "--output", "-d", "--data", "-F", "--form", "-T", "--upload-file", "-H", "-X", "-u", "-A", "-b", "-e", "-O", "-P", "-K",
              "--data-binary", "--data-raw", "--output-document", "--post-file", "--body-file", "--config", "-E", "--key", "--cert", "--cacert")  # fmt: skip
    for name, value in read_options(arguments, values).values:
        if name in ("-o", "--output", "-O", "--output-document"):
            yield "write", value
        elif name in ("-T", "--upload-file", "--post-file", "--body-file", "-K", "--config"):
            yield "read", value
        elif "@" in value or "<" in value:
            yield "read", re.split(r"[@<]", value, maxsplit=1)[1].split(";")[0]
    for word in arguments:
        if word.startswith("file://"):
            yield "read", word.removeprefix("file://")


def _find(arguments: tuple[str, ...]) -> Found:
    for path in searching.deletions(arguments):
        yield "remove tree", path
    for flag, value in pairwise(arguments):
        if flag in ("-fprint", "-fprintf", "-fls", "-fprint0"):
            yield "write", value


_SOCAT_FILE = re.compile(r"(?i)^(?:file|g?open|creat(?:e)?)(?:-\w+)*:([^,]+)|^(/[^,]+)")


def _socat(arguments: tuple[str, ...]) -> Found:
    """Addresses that are files. What comes from one side goes to the other: with `-u` from the first to the second only."""
    options = read_options(arguments, ("-b", "-t", "-T", "-L", "-W"))
    for number, address in enumerate(options.operands[:2]):
        for part in address.split("!!"):
            if match := _SOCAT_FILE.match(part):
                path = match.group(1) or match.group(2)
                yield from (("read", path),) if number == 0 or not options.has("-u") else ()
                yield from (("write", path),) if number == 1 or not options.has("-u") else ()


def _awk(arguments: tuple[str, ...]) -> Found:
    """`gawk -i inplace program files`: the files are rewritten."""
    options = read_options(arguments, ("-F", "-v", "-f", "-i", "-e", "--include", "--file", "--source"))
    writes = "inplace" in options.all_values("-i", "--include")
    scripted = bool(options.all_values("-f", "-e", "--file", "--source"))
    for operand in options.operands if scripted else options.operands[1:]:
        yield ("write" if writes else "read"), operand


def _ln(arguments: tuple[str, ...]) -> Found:
    for source, target in _transfer(read_options(arguments, ("-t", "-S", "--target-directory"))):
        yield ("read", source) if source else ("write", target)


_GIT_READERS = frozenset({"diff", "add", "hash-object", "apply", "blame", "stage"})


def _git(arguments: tuple[str, ...], trees: tuple[str, ...] = ()) -> Found:
    """`git clean` in another tree than the workspace; git commands that show or keep what is in any file."""
    options = read_options(arguments, ("-C", "-c", "--git-dir", "--work-tree", "-m", "-e"))
    tree = options.value("--work-tree") or next(iter(trees), None) or options.value("-C") or "."
    if "clean" in options.operands[:1] and options.has("-f", "--force") and options.has("-d"):
        yield "move", f"{tree.rstrip('/')}/{STAR}"
    if options.operands[:1] and options.operands[0] in _GIT_READERS:
        yield from (("read", operand) for operand in options.operands[1:])


def _engine(arguments: tuple[str, ...]) -> Found:
    """`docker cp`, `kubectl cp`: a file of the machine goes into a container."""
    if "cp" in arguments[:2]:
        yield from (("read", word) for word in arguments if not word.startswith("-"))


def _mkfs(arguments: tuple[str, ...]) -> Found:
    for operand in read_options(
        arguments, ("-t", "-L", "-b", "-i", "-I", "-m", "-N", "-O", "-E", "-T", "-U", "-F32"), single_dash=False
    ).operands:
        yield "write", operand


def _xxd(arguments: tuple[str, ...]) -> Found:
    operands = read_options(arguments, ("-s", "-c", "-l", "-g", "-o")).operands
    yield from (("read", operand) for operand in operands[:1])
    yield from (("write", operand) for operand in operands[1:])


def _user_removed(arguments: tuple[str, ...]) -> Found:
    """Removing a user together with the home folder."""
    options = read_options(arguments, ("-R", "--root"))
    if options.has("-r", "--remove", "--remove-home", "--remove-all-files"):
        for name in options.operands[:1]:
            yield "remove tree", f"/home/{name}"


_always = partial(_rm, always=True)
_open_in_place = _in_place(("-e", "-f", "--expression", "--file"))

_ROWS: dict[str, Reader] = {
    "rm": _rm, "grm": _rm, "unlink": _operands("remove"), "rmdir": _rmdir, "cmake": _cmake, "rclone": _rclone, "srm": _always, "wipe": _always, "trash": _always,
    "trash-put": _always, "rimraf": _always, "del-cli": _always, "rmtree": _always, "Remove-Item": _always, "ri": _always, "rd": _always,
    "del": _always, "erase": _always, "scrub": _shred, "shred": _shred, "gshred": _shred, "nwipe": _shred, "gio": _always, "kioclient": _always,
    "mv": _mv, "gmv": _mv, "cp": _cp, "gcp": _cp, "install": _cp, "scp": _scp, "ln": _ln, "rsync": _rsync, "dd": _dd, "dcfldd": _dd, "sg_dd": _dd,
    "unzip": archives.unzip, "socat": _socat, **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _awk),
    "tee": _tee, "sponge": _tee, "truncate": _operands("write", "-s", "-r", "--size", "--reference"), "touch": _operands("create", "-d", "-t", "-r"),
    "mkdir": _operands("create", "-m", "--mode"), "mkfifo": _operands("create", "-m"), "chmod": _mode, "chown": _mode, "chgrp": _mode,
    "setfacl": partial(_mode, first_is_mode=False, values=("-m", "-x", "-M", "-X", "--modify", "--set")),
    "setcap": _mode, "chattr": _chattr, "icacls": _mode, "takeown": _mode, "sed": _open_in_place, "gsed": _open_in_place,
    "perl": _in_place(("-e", "-E")), "ruby": _in_place(("-e",)), "curl": _curl, "wget": _curl, "find": _find, "tar": archives.tar, "gtar": archives.tar,
    "bsdtar": archives.tar, "zip": archives.zipped, "7z": archives.zipped, "mke2fs": _mkfs, "mkdosfs": _mkfs, "mkntfs": _mkfs, "mkexfatfs": _mkfs, "mkudffs": _mkfs, "mkreiserfs": _mkfs, "mkswap": _mkfs, "newfs": _mkfs, "xxd": _xxd,
    "docker": _engine, "podman": _engine, "nerdctl": _engine, "kubectl": _engine, "sudoedit": _operands("write", "-u", "-g"),
    "userdel": _user_removed, "deluser": _user_removed, "patch": _operands("write", "-i", "-p", "-d"),
    "ed": _operands("write"), "ex": _operands("write", "-c"), "vim": _operands("write", "-c"), "vi": _operands("write", "-c"),
    "nano": _operands("write"), "emacs": _operands("write", "--eval"), "visudo": _operands("write", "-f"), "vipw": lambda _: iter([("write", "/etc/passwd")]),
}  # fmt: skip
