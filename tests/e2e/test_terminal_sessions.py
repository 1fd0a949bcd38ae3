"""`lyma sessions`, `lyma undo` and `lyma diff`, after real turns with a provider on loopback."""

from __future__ import annotations

import json
import os

import pytest

from tests.lyma import environment, run_lyma
from tests.stub_provider import StubProvider, call_tool, say

EDIT = call_tool("edit_file", {"path": "a.txt", "edits": [{"old_text": "two", "new_text": "2"}]})
DELETE = call_tool("delete_file", {"path": "gone.sh"})
MAKE = call_tool("write_file", {"path": "new/made.txt", "text": "made\n"})


@pytest.fixture
def folder(tmp_path):
    work = tmp_path / "work space"
    work.mkdir()
    (work / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    (work / "gone.sh").write_bytes(b"#!/bin/sh\n")
    (work / "gone.sh").chmod(0o755)
    return work


@pytest.fixture
def lyma(folder):
    """Runs `lyma` in the folder with a provider that gives these replies."""

    def run(*arguments, replies=(), **more):
        with StubProvider(list(replies) or [say("ok")]) as stub:
            env = environment(LYMA_ORDER="local", LYMA_PROVIDERS__LOCAL__BASE_URL=stub.openai_url, **more)
            return run_lyma(*arguments, env=env, cwd=folder)

    return run


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_turn_is_shown_and_undone(lyma, folder):
    before = files(folder)
    lyma("ask", "change it", replies=[EDIT, DELETE, MAKE, say("done")])
    assert files(folder) == {"a.txt": b"one\r\n2\r\n", "new/made.txt": b"made\n"}
    diff = lyma("diff")
    assert diff.returncode == 0
    assert "--- a/a.txt\n" in diff.stdout
    assert "+++ b/new/made.txt" in diff.stdout
    undone = lyma("undo")
    assert (undone.returncode, undone.stdout.splitlines()[1:]) == (
        0, ["restored a.txt", "restored gone.sh", "removed new/made.txt"]
    )  # fmt: skip
    assert files(folder) == before
    assert (folder / "gone.sh").stat().st_mode & 0o777 == 0o755
    again = lyma("undo")
    assert (again.returncode, again.stderr) == (
        2, "lyma: No turn in this folder has changed a file that could be put back.\n"
    )  # fmt: skip


def test_what_was_changed_since_is_told_and_nothing_is_touched(lyma, folder):
    lyma("ask", "change it", replies=[EDIT, DELETE, say("done")])
    (folder / "a.txt").write_text("mine\n")
    refused = lyma("undo")
    assert refused.returncode == 1
    assert "Nothing was undone, for a.txt" in refused.stderr
    assert files(folder) == {"a.txt": b"mine\n"}
    command = refused.stderr.split("`")[1].split()
    assert command[0] == "lyma"
    partial = lyma(*command[1:])
    assert (partial.returncode, partial.stdout.splitlines()[1:]) == (
        1, ["kept a.txt: It was changed since.", "restored gone.sh"]
    )  # fmt: skip
    assert files(folder) == {"a.txt": b"mine\n", "gone.sh": b"#!/bin/sh\n"}


def test_sessions_are_listed_shown_copied_and_removed(lyma, folder, tmp_path):
    lyma("ask", "change it", replies=[EDIT, say("done")])
    (listed,) = map(json.loads, lyma("sessions", "--json").stdout.splitlines())
    session = listed["session"]
    assert (listed["title"], listed["turns"]) == ("change it", 1)
    assert session in lyma("sessions").stdout
    shown = lyma("sessions", "show", session).stdout.splitlines()
    assert shown[1:] == ["> change it", "changed a.txt", "done", ""]
    turn = shown[0].split()[1]
    events = [json.loads(line) for line in lyma("sessions", "show", session, "--json").stdout.splitlines()]
    assert {event["turn"] for event in events} == {turn}
    assert all(event["replay"] for event in events)
    assert lyma("undo", turn[-8:]).returncode == 0
    assert "(undone)" in lyma("sessions", "show", session).stdout
    fork = lyma("sessions", "fork", session).stdout.strip()
    assert fork != session
    assert lyma("sessions", "delete", session).stdout == f"{session} is gone.\n"
    assert [json.loads(line)["session"] for line in lyma("sessions", "--json").stdout.splitlines()] == [fork]
    assert lyma("sessions", "show", session).returncode == 1
    assert lyma("sessions", "show").returncode == 2
    assert not list((tmp_path / "nowhere").glob("*"))


def test_old_sessions_go_by_the_settings_or_by_the_option(lyma, folder):
    home = os.environ["LYMA_HOME"]
    lyma("ask", "old")
    (path,) = (entry.path for entry in os.scandir(f"{home}/sessions"))
    os.utime(path, (1, 1))
    assert lyma("sessions", "prune", "--days", "99999").stdout == "0 sessions were removed.\n"
    assert lyma("sessions", "prune").stdout == "1 sessions were removed.\n"
    lyma("ask", "older")
    (path,) = (entry.path for entry in os.scandir(f"{home}/sessions"))
    os.utime(path, (1, 1))
    lyma("ask", "new", LYMA_SESSIONS__KEEP_DAYS="30")
    assert [json.loads(line)["title"] for line in lyma("sessions", "--json").stdout.splitlines()] == ["new"]


def test_undo_asks_no_key_command_and_works_without_any_provider(folder, tmp_path):
    marker = tmp_path / "asked"
    env = environment(LYMA_ORDER="openai", OPENAI_API_KEY=f"cmd:touch {marker}")
    for command in (["undo"], ["diff"], ["sessions"]):
        run_lyma(*command, env=env, cwd=folder)
    assert not marker.exists()
