"""Every command in docs/sessions.md runs, in the order of the page, in a folder where something was asked before."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

from lyma_server.terminal.slash import ROWS
from tests.lyma import environment, run_lyma
from tests.stub_provider import StubProvider, call_tool, say

PAGE = (Path(__file__).resolve().parents[2] / "docs/sessions.md").read_text(encoding="utf-8")
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]


def answer(request):
    """Each ask edits the file, so that there is something to undo."""
    messages = request.body["messages"]
    if messages[-1]["role"] == "tool":
        return say("Done.")
    step = sum(message["role"] == "user" for message in messages)
    return call_tool("write_file", {"path": "a.txt", "text": f"{step}\n"})


def test_every_command_runs(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    with StubProvider(answer) as stub:
        env = environment(LYMA_ORDER="local", LYMA_PROVIDERS__LOCAL__BASE_URL=stub.openai_url)
        run_lyma("ask", "first", env=env, cwd=work)
        sessions = [
            json.loads(line)["session"]
            for line in run_lyma("sessions", "--json", env=env, cwd=work).stdout.splitlines()
        ]
        for command in COMMANDS:
            words = [sessions[-1] if word == "ID" else word for word in shlex.split(command)]
            assert words[0] == "lyma"
            ended = run_lyma(*words[1:], stdin="hello\n", env=env, cwd=work)
            assert ended.returncode == 0, (command, ended.stderr)
    assert len(COMMANDS) > 12


def test_the_table_of_commands_is_that_of_the_code():
    rows = re.findall(r"^\| `/([^`]+)` \|", PAGE, re.MULTILINE)
    assert sorted(rows) == sorted(f"{row.name} {row.arguments}".rstrip() for row in ROWS)
