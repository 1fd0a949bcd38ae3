"""`lyma` as a person meets it: help, mistakes, exit codes; never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from lyma_server import __version__
from lyma_server.terminal.commands import COMMANDS
from tests.lyma import COMMAND, run_lyma


def test_the_overview_names_every_command_and_begins_with_examples():
    result = run_lyma("--help")
    assert result.returncode == 0
    assert all(f"  {row.name} " in result.stdout for row in COMMANDS)
    assert 'lyma ask "' in result.stdout
    assert run_lyma("help").stdout == result.stdout
    bare = run_lyma()
    assert (bare.returncode, bare.stdout) == (2, result.stdout)


def test_version():
    assert run_lyma("--version").stdout == f"lyma {__version__}\n"


@pytest.mark.parametrize("row", COMMANDS, ids=lambda row: row.name)
def test_every_command_explains_itself(row):
    result = run_lyma(row.name, "--help")
    assert result.returncode == 0, result.stderr
    assert f"usage: lyma {row.name}" in result.stdout
    assert run_lyma("help", row.name).stdout == result.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["sttus"], "There is no command `sttus`; did you mean `lyma status`?"),
        (["\x1b[2J"], "There is no command `␛[2J`; `lyma --help` lists them."),
        (["--wrong"], "There is no command `--wrong`; `lyma --help` lists them."),
        (["ask", "--hlep"], "`lyma ask` does not take --hlep there; see `lyma ask --help`."),
        (["ask", "--file"], "Argument --file: expected one argument. See `lyma ask --help`."),
        (["ask", "--continue", "--session", "s", "hi"], "not allowed with argument --continue"),
        (["ask", "hi", "--file", "nope.py"], "There is no file nope.py;"),
        (["ask", ""], "There is nothing to ask: the prompt is empty."),
        (["ask", "-"], "There is nothing to ask: the prompt is empty."),
    ],
)
def test_a_wrong_usage_is_one_sentence_and_exit_2(arguments, sentence, tmp_path):
    result = run_lyma(*arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert result.stdout == ""
    assert sentence in result.stderr
    assert result.stderr.startswith("lyma: ")
    assert result.stderr.count("\n") == 1


def test_an_incident_is_a_number_and_a_log_without_values(tmp_path):
    code = (
        "import sys; from lyma_server.terminal import ask, main\n"
        "def broken(args): raise RuntimeError('sk-ant-a-secret-in-a-message')\n"
        "ask.run = broken; sys.exit(main.main(['ask', 'hi'], print))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    log = Path(os.environ["LYMA_HOME"], "log", "incidents.log")
    assert result.returncode == 1
    assert result.stderr.startswith("lyma: Internal error, incident ")
    assert str(log) in result.stderr
    assert "Traceback" not in result.stderr
    text = log.read_text()
    assert "RuntimeError" in text
    assert result.stderr.split("incident ")[1][:8] in text
    assert "secret" not in text + result.stderr
    assert log.stat().st_mode & 0o777 == 0o600


def test_a_home_that_cannot_be_made_is_one_sentence():
    result = run_lyma("status", env={**os.environ, "LYMA_HOME": "/proc/nowhere"})
    assert result.returncode == 1
    assert result.stderr.startswith("lyma: /proc/nowhere cannot be created")


def test_the_schema_is_printed_three_ways():
    schema = json.loads(run_lyma("schema", "--json").stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["methods"]["lyma/ask"]["params"] == {"$ref": "#/$defs/AskParams"}
    assert json.loads(run_lyma("schema").stdout) == schema
    assert "export interface AskParams" in run_lyma("schema", "--typescript").stdout
    assert "---@class lyma.AskParams" in run_lyma("schema", "--lua").stdout


def test_a_reader_that_leaves_is_met_with_silence():
    with subprocess.Popen([*COMMAND, "schema"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as lyma:
        lyma.stdout.close()
        assert lyma.stderr.read() == b""
        assert lyma.wait(10) == 1


def run_in_shell(line, folder, **more):
    """Run `lyma` (as $LYMA) from a shell, which closes and points descriptors as it is told."""
    env = os.environ | {"LYMA": f"{sys.executable} -m lyma_server", "LYMA_HOME": str(folder / "home"), **more}
    return subprocess.run(
        ["/bin/sh", "-c", line], env=env, cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize(
    ("line", "status", "said"),
    [
        ("$LYMA config path >&-", 1, "lyma: The output cannot be written: Bad file descriptor.\n"),
        ("$LYMA config path >/dev/full", 1, "lyma: The output cannot be written: No space left on device.\n"),
        ("$LYMA nonsense >&-", 2, "lyma: There is no command `nonsense`; `lyma --help` lists them.\n"),
        ("$LYMA nonsense 2>&-", 2, ""),
        ("$LYMA nonsense 2>/dev/full", 2, ""),
        ("$LYMA ask <&-", 2, "lyma: There is nothing to ask: the prompt is empty.\n"),
        (
            "mkdir gone && cd gone && rmdir ../gone && $LYMA ask hi",
            1,
            "lyma: The folder that you are in is gone; go to",
        ),
    ],
)
def test_streams_and_folders_that_are_not_there_are_one_sentence(line, status, said, tmp_path):
    result = run_in_shell(line, tmp_path)
    assert (result.returncode, result.stdout) == (status, "")
    assert result.stderr.startswith(said)
    assert result.stderr.count("\n") == (1 if said else 0)


def test_no_file_of_ours_takes_the_place_of_a_closed_stream(tmp_path):
    result = run_in_shell("$LYMA status 2>&- <&-", tmp_path, OPENAI_API_KEY="sk-test-0123456789abcdef")
    assert (result.returncode, result.stderr) == (0, "")
    assert "openai" in result.stdout


LOST = """
import time, weakref
from lyma_server.terminal.main import repeat_lost_ctrl_c

def lose(_):
    raise KeyboardInterrupt

class Thing: pass

repeat_lost_ctrl_c()
thing = Thing()
link = weakref.ref(thing, lose)
try:
    del thing
    time.sleep(30)
except KeyboardInterrupt:
    print("heard")
"""


def test_a_ctrl_c_that_python_drops_comes_again():
    done = subprocess.run([sys.executable, "-c", LOST], capture_output=True, text=True, timeout=20, check=False)
    assert (done.stdout, done.stderr) == ("heard\n", "")
