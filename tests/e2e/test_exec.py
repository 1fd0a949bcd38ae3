"""`lyma exec`: a command exactly as the agent would run it, through the real program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lyma_server.isolation import kernel, probe
from tests.command_sessions import UNSEEN, hide_words, throwaway_home
from tests.security.guarded import Guarded

pytestmark = [
    pytest.mark.skipif(not kernel.has_exec_notification(), reason="this kernel cannot ask about system calls"),
    pytest.mark.skipif(not probe.find_bwraps(), reason="bubblewrap is not here"),
]
SECRET = "sk-test-abcdefghijklmnopqrstuvwx"


@pytest.fixture
def home(monkeypatch):
    with throwaway_home() as folder:
        (folder / ".lyma/config.toml").unlink()
        monkeypatch.setenv("HOME", str(folder))
        monkeypatch.setenv("LYMA_HOME", str(folder / ".lyma"))
        yield folder


def start(home: Path, *words: str, cwd: Path | None = None, **options) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "lyma_server", "exec", *words],
        cwd=cwd or home / "work",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def lyma_exec(home: Path, *words: str, **options) -> tuple[int, str, str]:
    with start(home, *words, **options) as process:
        said, complained = process.communicate(timeout=60)
    return process.returncode, said, complained


def test_output_and_exit_status_are_those_of_the_command(home):
    assert lyma_exec(home, "echo out; echo err >&2; exit 7") == (7, "out\nerr\n", "")
    assert lyma_exec(home, "--", "printf", "'\\033[31m\\n'") == (0, "\x1b[31m\n", "")


@pytest.mark.parametrize("words", [(), ("",), ("--", "  ")])
def test_without_a_command_it_says_how_to_give_one(home, words):
    code, said, complained = lyma_exec(home, *words)
    assert (code, said) == (2, "")
    assert complained.startswith("lyma: Give the command to run")


def test_when_the_reader_leaves_the_command_ends_without_a_word(home):
    with start(home, "yes; touch went_on") as process:
        assert process.stdout.readline() == "y\n"
        process.stdout.close()
        process.stdout = None
        _, complained = process.communicate(timeout=60)
    assert (process.returncode, complained) == (1, "")
    assert not (home / "work/went_on").exists()


def test_output_that_nothing_takes_is_one_sentence(home):
    with Path("/dev/full").open("w") as full:
        process = subprocess.run(
            [sys.executable, "-m", "lyma_server", "exec", "yes"],
            cwd=home / "work",
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert process.returncode == 1
    assert process.stderr == "lyma: The output cannot be written: No space left on device.\n"


def test_writing_outside_is_followed_by_where_one_may(home):
    code, _, complained = lyma_exec(home, "touch ../there")
    assert code != 0
    assert complained.endswith("name more folders in executor.writable.\n")


@pytest.mark.parametrize(
    ("setting", "value", "complaint"),
    [
        ("WRITABLE", "~/nowhere", "nowhere in executor.writable does not exist; make it, or take it out."),
        ("WRITABLE", "here", "here in executor.writable is no absolute path; write it in full."),
        ("WRITABLE", "~", "it holds your home; name another folder."),
        ("SOCKETS", "docker", "docker in executor.sockets is no absolute path; write it in full."),
    ],
)
def test_a_wrong_setting_is_named_and_nothing_runs(home, setting, value, complaint):
    environment = {**os.environ, f"LYMA_EXECUTOR__{setting}": value}
    code, said, complained = lyma_exec(home, "echo ran", env=environment)
    assert (code, said) == (1, "")
    assert complained.endswith(f"{complaint}\n")
    assert complained.count("\n") == 1


def test_wider_settings_are_said_when_they_are_used(home):
    environment = {**os.environ, "LYMA_EXECUTOR__WRITE": "everywhere", "LYMA_EXECUTOR__SOCKETS": "/run/none.sock"}
    code, said, complained = lyma_exec(home, "touch ../there && echo ran", env=environment)
    assert (code, said) == (0, "ran\n")
    assert 'executor.write is "everywhere"' in complained
    assert "lets commands reach /run/none.sock" in complained


def test_what_is_forbidden_is_not_run(home):
    code, said, complained = lyma_exec(home, f"touch ran; rm -rf {home}")
    assert (code, said) == (1, "")
    assert "fs-wipe" in complained
    assert "Name the subfolder" in complained
    assert "Traceback" not in complained
    assert not (home / "work/ran").exists()


def test_what_the_guard_refuses_is_said(home):
    hide_words(home, "rm", "-rf", str(home))
    code, _, complained = lyma_exec(home, f"{UNSEEN}; false")
    assert code != 0
    assert "refused as it was to be executed (fs-wipe)" in complained
    assert (home / "work").is_dir()


def test_no_key_reaches_a_command(home):
    environment = {
        **os.environ,
        "OPENAI_API_KEY": SECRET,
        "MINE": f"x{SECRET}",
        "GITHUB_TOKEN": "t",
        "BASH_ENV": "/x",
        "FINE": "yes",
    }
    (home / ".lyma/config.toml").write_text(f"[providers.openai]\nkeys = ['{SECRET}']\n")
    (home / ".lyma/config.toml").chmod(0o600)
    (home / "work/look.py").write_text(LOOK)
    code, said, complained = lyma_exec(home, "python3 look.py", env=environment)
    assert (code, complained) == (0, "")
    assert SECRET not in said
    for name in ("OPENAI_API_KEY", "GITHUB_TOKEN", "BASH_ENV", "LYMA_HOME"):
        assert f"{name}=" not in said
    assert "FINE=yes" in said
    assert "seen: []" in said
    assert "not written" in said


LOOK = """
import glob, os
home = os.path.expanduser('~/.lyma')
for name in [*glob.glob('/proc/*/environ'), *glob.glob('/proc/*/cmdline'), home + '/config.toml']:
    try:
        print(open(name, errors='replace').read())
    except OSError:
        pass
print('seen:', os.listdir(home))
try:
    open(home + '/approval', 'w')
except OSError:
    print('not written')
"""


@pytest.mark.parametrize("where", ["home", "root"])
def test_there_are_no_commands_without_a_workspace(home, where):
    code, said, complained = lyma_exec(home, "echo ran", cwd={"home": home, "root": Path("/")}[where])
    assert (code, said) == (2, "")
    assert "go to a project's folder" in complained


def test_there_are_no_commands_in_lymas_own_home(home):
    (home / ".lyma/inner").mkdir()
    assert lyma_exec(home, "echo ran", cwd=home / ".lyma/inner")[:2] == (2, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
def test_it_ends_with_all_that_it_started(home, number):
    marker = f"986.{int(number):02}"
    process = start(home, f"(setsid sleep {marker} &) ; sleep {marker}")
    with process:
        deadline = time.monotonic() + 30
        while running(marker) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert running(marker) == 2
        process.send_signal(number)
        process.communicate(timeout=5)
        deadline = time.monotonic() + 2
        while running(marker) and time.monotonic() < deadline:
            time.sleep(0.01)
    assert running(marker) == 0
    assert process.returncode == (-9 if number == signal.SIGKILL else 130)


def running(marker: str) -> int:
    found = 0
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            found += words[:2] == [b"sleep", marker.encode()]
    return found


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: Lyma hides its memory from others of the same user")
def test_below_another_guard_it_runs_all_the_same_and_says_so(home):
    """The kernel allows one supervisor of system calls for a process."""
    guarded = Guarded(lambda _: None)
    words = [sys.executable, "-m", "lyma_server", "exec", "echo ran; rm -rf build"]
    result = guarded.run(words, cwd=home / "work", env=dict(os.environ))
    assert "ran\n" in result.stdout
    assert result.stdout.count("another supervisor of system calls is here already") == 1
    assert "rm" in {request.argv[0] for request in guarded.requests}
