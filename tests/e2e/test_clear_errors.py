"""Whatever is wrong, a person reads one sentence that says what and what to do, and a script gets the right exit code.

Rows of a table: each runs the real `lyma` and finds one line on stderr, nothing on stdout, no traceback and no incident.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from attrs import field, frozen

from tests.editors.real_server import settings
from tests.lyma import COMMAND, environment, run_lyma
from tests.stub_provider import StubProvider, call_tool, fail, refusing_url, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

ERROR, USAGE, NOBODY_ANSWERED = 1, 2, 4
KEY = "sk-proj-0123456789abcdefghij"
AT_A_STUB = {"LYMA_ORDER": "local", "LYMA_PROVIDERS__LOCAL__MODEL": "m"}


def nothing(_home: Path) -> None:
    """All is as it should be."""


def config(text: str | bytes, mode: int = 0o600) -> Callable[[Path], None]:
    def write(home: Path) -> None:
        path = home / "config.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.chmod(mode)

    return write


def config_elsewhere(home: Path) -> None:
    """A symbolic link to a file that would be good."""
    (home / "real.toml").touch(0o600)
    (home / "config.toml").symlink_to(home / "real.toml")


def config_as_folder(home: Path) -> None:
    (home / "config.toml").mkdir()


@frozen
class Row:
    """What is run, with what exit code it ends, and what its sentence says."""

    name: str
    arguments: tuple[str, ...]
    code: int
    says: str
    prepare: Callable[[Path], None] = nothing
    variables: dict[str, str] = field(factory=dict)


ASK = ("ask", "hi")
DEAD = {**AT_A_STUB, "LYMA_PROVIDERS__LOCAL__BASE_URL": refusing_url()}
NO_KEY = {"LYMA_ORDER": "openai"}
ROWS = (
    # the configuration
    Row("no TOML", ASK, ERROR, r"config\.toml, line 3: .*valid TOML\.", config("[agent]\nmax_steps = [\n")),
    Row("unknown setting", ASK, ERROR, r"line 1: ordr is not a setting; did you mean order\?", config("ordr = []\n")),
    Row("wrong type", ASK, ERROR, r"line 2: agent\.max_steps must be", config("[agent]\nmax_steps = 'many'\n")),
    Row("wrong value", ASK, ERROR, r"line 2: agent\.confirm must be", config("[agent]\nconfirm = 'maybe'\n")),
    Row("not UTF-8", ASK, ERROR, r"line 1: not UTF-8; save the file as UTF-8\.", config(b"order = ['\xff']\n")),
    Row("readable by others", ASK, ERROR, r"run: chmod 600 \S+config\.toml\.", config("", 0o640)),
    Row("a symbolic link", ASK, ERROR, r"is a symbolic link; put the file itself there", config_elsewhere),
    Row("a folder", ("status",), ERROR, r"is not a regular file", config_as_folder),
    Row("unknown in the order", ASK, ERROR, r"neither known nor configured", variables={"LYMA_ORDER": "nobody"}),
    Row("a variable", ASK, ERROR, r"LYMA_ROUTER__DEADLINE_S: .* must be", variables={"LYMA_ROUTER__DEADLINE_S": "soon"}),
    Row("an address", ASK, ERROR, r"must be an address", variables={**DEAD, "LYMA_PROVIDERS__LOCAL__BASE_URL": "http://[x"}),
    Row("unknown name to set", ("config", "set", "nosuch", "1"), USAGE, r"nosuch is not a setting"),
    # keys
    Row("no key", ASK, ERROR, r"OPENAI_API_KEY is not set.*run `lyma setup`", variables=NO_KEY),
    Row("unset variable", ASK, ERROR, r"env:GONE.*run `lyma setup`", variables={**NO_KEY, "LYMA_PROVIDERS__OPENAI__KEYS": "env:GONE"}),
    Row("a command that is not there", ASK, ERROR, r"cmd:no-such", variables={**NO_KEY, "LYMA_PROVIDERS__OPENAI__KEYS": "cmd:no-such-thing"}),
    Row("no key for models", ("models", "openai"), ERROR, r"no key.*`lyma keys add openai`", variables=NO_KEY),
    Row("a key that is not there", ("keys", "remove", "openai", "9"), USAGE, r"openai has no key 9"),
    Row("no key given", ("keys", "add", "openai"), USAGE, r"No key was given; nothing was changed"),
    # providers
    Row("a dead server", ASK, NOBODY_ANSWERED, r"local could not be reached at http://127", variables=DEAD),
    Row("a host that is nowhere", ASK, NOBODY_ANSWERED, r"local has a host name that could not be resolved", variables={**DEAD, "LYMA_PROVIDERS__LOCAL__BASE_URL": "https://nowhere.invalid/v1"}),
    Row("unknown provider", ("ask", "--provider", "nobody", "hi"), USAGE, r"There is no provider 'nobody'.*local", variables=DEAD),
    Row("unknown provider for models", ("models", "nobody"), USAGE, r"There is no provider 'nobody'", variables=DEAD),
    Row("no such model file", ASK, NOBODY_ANSWERED, r"no model file /no/such\.gguf; correct", variables={"LYMA_ORDER": "embedded", "LYMA_PROVIDERS__EMBEDDED__GGUF": "/no/such.gguf"}),
    # what is asked for
    Row("no such file", ("ask", "--file", "nope.py", "hi"), USAGE, r"There is no file nope\.py; paths are taken from"),
    Row("a folder as file", ("ask", "--file", ".", "hi"), USAGE, r"\. is a folder; name the files"),
    Row("no such session", ("ask", "--session", "nope", "hi"), ERROR, r"There is no session nope", variables=DEAD),
    Row("no such command", ("sttus",), USAGE, r"There is no command `sttus`; did you mean `lyma status`\?"),
    Row("no text as command", ("\udcff",), USAGE, r"There is no command `\\udcff`"),
    Row("no such option", ("status", "--hlep"), USAGE, r"does not take --hlep there; see `lyma status --help`"),
    Row("no terminal", ("setup",), USAGE, r"needs a terminal; pipe a key"),
    # the home
    Row("a home below a file", ASK, ERROR, r"/etc/passwd/x cannot be created \(Not a directory\); set LYMA_HOME", variables={"LYMA_HOME": "/etc/passwd/x"}),
    Row("a home that is a file", ASK, ERROR, r"/etc/passwd .*set LYMA_HOME", variables={"LYMA_HOME": "/etc/passwd"}),
    Row("a home in /proc", ("status",), ERROR, r"/proc/nowhere cannot be created", variables={"LYMA_HOME": "/proc/nowhere"}),
    Row("a relative home", ("status",), ERROR, r"LYMA_HOME is x; it must be an absolute path", variables={"LYMA_HOME": "x"}),
)  # fmt: skip


def check(done: subprocess.CompletedProcess[str], code: int, says: str) -> None:
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert re.fullmatch(r"lyma: [^\n]+[.?]\n", done.stderr), done.stderr
    assert re.search(says, done.stderr), done.stderr
    assert not re.search(r"Traceback|incident|Error\b|Errno|None", done.stderr), done.stderr


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (tmp_path / "work").mkdir()
    monkeypatch.setenv("LYMA_HOME", str(home))
    monkeypatch.chdir(tmp_path / "work")
    return home


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_one_sentence_and_the_right_exit_code(row: Row, home: Path) -> None:
    row.prepare(home)
    check(run_lyma(*row.arguments, env=environment(**row.variables)), row.code, row.says)


@pytest.mark.parametrize("status", [401, 500])
def test_a_server_that_refuses(status: int, home: Path) -> None:
    with StubProvider([fail(status)]) as stub:
        done = run_lyma("ask", "hi", env=environment(**settings(stub, home)))
    check(done, NOBODY_ANSWERED, "local")


def test_bytes_that_are_no_text_are_no_key(home: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "keys", "add", "openai"],
        input=b"\xff\xfe",
        env=environment(PYTHONIOENCODING="utf-8:strict"),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (USAGE, b"")
    assert done.stderr == b"lyma: What was given is no text, so it is no key; nothing was changed.\n"


def test_a_folder_that_is_gone(home: Path, tmp_path: Path) -> None:
    words = ["sh", "-c", 'rmdir "$PWD"; exec "$@"', "sh", *COMMAND, "ask", "hi"]
    (tmp_path / "gone").mkdir()
    done = subprocess.run(
        words, cwd=tmp_path / "gone", env=environment(**DEAD), capture_output=True, text=True, check=False
    )
    check(done, ERROR, "The folder that you are in is gone; go to one that is there")


SPEAKERS = (("ask", "hi"), ("status",), ("--version",), ("--help",))


def redirected(how: str, arguments: Sequence[str], **variables: str) -> subprocess.CompletedProcess[str]:
    """Run with a shell's redirection, such as `>&-`."""
    words = ["sh", "-c", f'exec "$@" {how}', "sh", *COMMAND, *arguments]
    return subprocess.run(words, env=environment(**variables), capture_output=True, text=True, check=False)


@pytest.mark.parametrize("arguments", SPEAKERS, ids=" ".join)
def test_an_output_that_is_full(arguments: tuple[str, ...], home: Path) -> None:
    with StubProvider([say("Hello")]) as stub:
        done = redirected("> /dev/full", arguments, **settings(stub, home))
    check(done, ERROR, r"cannot be written: No space left on device")


@pytest.mark.parametrize("arguments", SPEAKERS[:3], ids=" ".join)
def test_an_output_that_is_closed(arguments: tuple[str, ...], home: Path) -> None:
    """And nothing of what is kept was opened in its place: the answer would have been written into it."""
    with StubProvider([say("Hello")]) as stub:
        done = redirected(">&-", arguments, **settings(stub, home))
    assert not [path for path in home.rglob("*") if path.is_file() and path.read_bytes().startswith(b"Hello")]
    check(done, ERROR, "cannot be written: Bad file descriptor")


def test_an_input_that_is_closed(home: Path) -> None:
    check(redirected("<&-", ("ask", "-"), **DEAD), USAGE, "There is nothing to ask")
    with StubProvider([say("Hello")]) as stub:
        done = redirected("<&- 2>&-", ("ask", "hi"), **settings(stub, home))
    assert (done.returncode, done.stdout, done.stderr) == (0, "Hello\n", "")


def test_text_that_is_no_text_still_reaches_the_provider(home: Path) -> None:
    """From the command line and from the name of a file."""
    Path(os.fsdecode(b"caf\xe9.txt")).write_text("one\n")
    with StubProvider([call_tool("list_files", {}), say("Hello")]) as stub:
        done = run_lyma("ask", "what is \udcff?", env=environment(**settings(stub, home)))
    assert (done.returncode, done.stdout) == (0, "Hello\n"), done.stderr
    assert "caf\ufffd.txt" in str(stub.requests[1].body)


def fill(path: Path) -> None:
    """Write until nothing more fits."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass


@contextmanager
def small_disk(home: Path) -> Iterator[None]:
    """A file system for the home that is full."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("needs root and mount: a small file system is mounted")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32k,mode=700", "none", str(home)], check=False)
    if mounted.returncode != 0:
        pytest.skip("needs root that may mount: a small file system is mounted")
    try:
        fill(home / "full")
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(home)], check=True)


def test_a_full_disk(home: Path) -> None:
    """What cannot be kept is said; what can be done is done."""
    with StubProvider([say("Hello")]) as stub, small_disk(home):
        variables = environment(**settings(stub, home))
        for arguments in (("keys", "add", "openai"), ("config", "set", "order", "openai")):
            done = run_lyma(*arguments, stdin=KEY, env=variables)
            check(done, ERROR, r"config\.toml cannot be written \(No space left on device\); it is unchanged")
        asked = run_lyma("ask", "hi", env=variables)
    assert (asked.returncode, asked.stdout) == (0, "Hello\n")
    assert "This session is not being saved: No space left on device" in asked.stderr
    assert "Traceback" not in asked.stderr
