"""The gate: what lets an agent pass, every bad state of a record, revocation, and the log."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys

import pytest

from lyma_server.config.model import CeilingSettings
from lyma_server.config.paths import Home
from lyma_server.errors import ApprovalDenied, ApprovalExpired, ApprovalRequired, HashMismatch, LymaError, UsageError
from lyma_server.factory.approval import RECORD_S, record_as_json
from lyma_server.factory.audit import FIRST, Audit, Break
from lyma_server.factory.canonical import hash_of
from lyma_server.factory.factory import Factory
from lyma_server.factory.foreign import with_program
from lyma_server.factory.gate import Gate, real_workspace
from lyma_server.factory.records import record_name, tombstone_name
from lyma_server.factory.trees import adopt
from tests.agents import plain_bundle

BUNDLE = plain_bundle()
START = 1_800_000_000


class Clock:
    now = START

    def __call__(self):
        return self.now


@pytest.fixture
def home(tmp_path):
    made = Home(tmp_path / "home")
    made.ensure()
    return made


@pytest.fixture
def workspace(tmp_path):
    (tmp_path / "app").mkdir()
    return tmp_path / "app"


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def gate(home, clock):
    return Gate(home, clock=clock)


def approve(gate, workspace, bundle=BUNDLE, channel="terminal"):
    asked = gate.ask(bundle, workspace, b"shown", channel)
    return gate.answer(asked, bundle.hash, asked.nonce, approved=True)


def place(home, workspace):
    return home.approvals / record_name(BUNDLE.hash, str(workspace))


def events(gate):
    return [entry["event"] for entry in gate.audit.entries()]


def test_nothing_passes_that_nobody_approved(gate, workspace):
    with pytest.raises(ApprovalRequired, match=f"lyma approve {BUNDLE.hash}"):
        gate.check(BUNDLE.hash, workspace)


def test_what_was_approved_passes_there_and_nowhere_else(gate, home, workspace, tmp_path):
    record = approve(gate, workspace)
    assert gate.check(BUNDLE.hash, workspace) == record
    assert stat.S_IMODE(place(home, workspace).stat().st_mode) == 0o600
    assert stat.S_IMODE(home.approvals.stat().st_mode) == 0o700
    assert (record.workspace, record.expires_at - record.approved_at) == (str(workspace), RECORD_S)
    with pytest.raises(ApprovalRequired):
        gate.check(plain_bundle(budget__max_turns=13).hash, workspace)
    (tmp_path / "other").mkdir()
    with pytest.raises(ApprovalRequired):
        gate.check(BUNDLE.hash, tmp_path / "other")


def test_a_workspace_is_known_by_its_real_path(gate, workspace, tmp_path):
    (tmp_path / "link").symlink_to(workspace)
    approve(gate, tmp_path / "link")
    assert gate.check(BUNDLE.hash, workspace).workspace == str(workspace)
    workspace.rename(tmp_path / "moved")
    workspace.mkdir()
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to(tmp_path / "moved")
    with pytest.raises(ApprovalRequired):
        gate.check(BUNDLE.hash, tmp_path / "link")
    for lost in (tmp_path / "nowhere", tmp_path / os.fsdecode(b"\xff")):
        with pytest.raises(ApprovalDenied, match="no folder"):
            real_workspace(lost)
    (tmp_path / os.fsdecode(b"\xff")).mkdir()
    with pytest.raises(ApprovalDenied, match="no folder"):
        gate.check(BUNDLE.hash, tmp_path / os.fsdecode(b"\xff"))


def rewritten(path, **changes):
    facts = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({name: value for name, value in facts.items() if value is not ...}))


def linked(path):
    path.rename(path.with_name("real.json"))
    path.symlink_to("real.json")


def foreign(path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)


def fifo(path):
    path.unlink()
    os.mkfifo(path, 0o600)


def folder(path):
    path.unlink()
    path.mkdir(mode=0o600)


BAD_STATES = {
    "missing": (lambda path: path.unlink(), ApprovalRequired),
    "empty": (lambda path: path.write_text(""), ApprovalDenied),
    "cut off": (lambda path: path.write_text(path.read_text()[:-9]), ApprovalDenied),
    "no JSON": (lambda path: path.write_bytes(b"\xff\xfe"), ApprovalDenied),
    "a list": (lambda path: path.write_text("[]"), ApprovalDenied),
    "a name twice": (lambda path: path.write_text(path.read_text()[:-1] + ',"hash":"x"}'), ApprovalDenied),
    "a field missing": (lambda path: rewritten(path, shown=...), ApprovalDenied),
    "a field more": (lambda path: rewritten(path, scope="all"), ApprovalDenied),
    "another format": (lambda path: rewritten(path, format=2), ApprovalDenied),
    "another channel": (lambda path: rewritten(path, channel="tool"), ApprovalDenied),
    "for ever": (lambda path: rewritten(path, expires_at=2**40), ApprovalDenied),
    "another hash": (lambda path: rewritten(path, hash="sha256:" + "c" * 64), HashMismatch),
    "another workspace": (lambda path: rewritten(path, workspace="/"), HashMismatch),
    "another runner": (lambda path: rewritten(path, runner_abi=2), ApprovalExpired),
    "too old": (lambda path: rewritten(path, approved_at=START - RECORD_S, expires_at=START), ApprovalExpired),
    "from the future": (lambda path: rewritten(path, approved_at=START + 301, expires_at=START + 999), ApprovalExpired),
    "a link": (linked, ApprovalDenied),
    "a hard link": (lambda path: os.link(path, path.with_name("second")), ApprovalDenied),
    "a FIFO": (fifo, ApprovalDenied),
    "a folder": (folder, ApprovalDenied),
    "readable by the group": (lambda path: path.chmod(0o640), ApprovalDenied),
    "writable by others": (lambda path: path.chmod(0o602), ApprovalDenied),
    "too large": (lambda path: path.write_bytes(b" " * 20_000), ApprovalDenied),
    "a folder open to others": (lambda path: path.parent.chmod(0o750), ApprovalDenied),
    "a home open to others": (lambda path: path.parent.parent.chmod(0o711), ApprovalDenied),
    "a tombstone": (lambda path: (path.parent / tombstone_name(BUNDLE.hash)).write_text(""), ApprovalDenied),
    "a linked tombstone": (lambda path: (path.parent / tombstone_name(BUNDLE.hash)).symlink_to("x"), ApprovalDenied),
}  # fmt: skip


@pytest.mark.parametrize("state", BAD_STATES)
def test_every_bad_state_of_a_record_is_refused(gate, home, workspace, state):
    spoil, error = BAD_STATES[state]
    approve(gate, workspace)
    spoil(place(home, workspace))
    with pytest.raises(LymaError) as caught:
        gate.check(BUNDLE.hash, workspace)
    assert type(caught.value) is error
    assert BUNDLE.hash in caught.value.message
    assert "\n" not in caught.value.message


def test_a_folder_of_approvals_that_is_a_link_is_refused(gate, home, workspace, tmp_path):
    approve(gate, workspace)
    home.approvals.rename(tmp_path / "elsewhere")
    home.approvals.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ApprovalDenied):
        gate.check(BUNDLE.hash, workspace)
    assert gate.records.all() == gate.records.revoked() == ()
    with pytest.raises(ApprovalDenied):
        approve(gate, workspace)
    with pytest.raises(ApprovalDenied):
        gate.records.write(gate_record(workspace))
    with pytest.raises(ApprovalDenied):
        gate.revoke(BUNDLE.hash)


def gate_record(workspace):
    from lyma_server.factory.approval import Record

    return Record(BUNDLE.hash, "plain", str(workspace), "b" * 64, 1, "terminal", START, START + 5)


def test_a_record_of_another_user_is_refused(gate, home, workspace, monkeypatch):
    approve(gate, workspace)
    foreign(place(home, workspace), monkeypatch)
    with pytest.raises(ApprovalDenied, match="another user"):
        gate.check(BUNDLE.hash, workspace)


def test_a_record_is_good_for_ninety_days_and_can_be_renewed(gate, clock, workspace, home):
    approve(gate, workspace)
    before = place(home, workspace).stat().st_ino
    clock.now += RECORD_S
    with pytest.raises(ApprovalExpired):
        gate.check(BUNDLE.hash, workspace)
    approve(gate, workspace)
    assert gate.check(BUNDLE.hash, workspace).approved_at == clock.now
    assert place(home, workspace).stat().st_ino != before
    assert [path.name for path in home.approvals.iterdir()] == [place(home, workspace).name]


def test_another_runner_asks_again(home, clock, gate, workspace):
    approve(gate, workspace)
    with pytest.raises(ApprovalExpired, match="another version of Lyma's runner"):
        Gate(home, clock=clock, runner_abi=2).check(BUNDLE.hash, workspace)


ANSWERS = {
    "no": (lambda asked: {"approved": False}, ApprovalDenied, "rejected"),
    "something like yes": (lambda asked: {"approved": "yes"}, ApprovalDenied, "rejected"),
    "another hash": (lambda asked: {"hash_": "sha256:" + "c" * 64}, HashMismatch, "withdrawn"),
    "a beginning": (lambda asked: {"hash_": BUNDLE.hash[:20]}, HashMismatch, "withdrawn"),
    "another nonce": (lambda asked: {"nonce": "guess"}, ApprovalDenied, None),
    "no nonce": (lambda asked: {"nonce": ""}, ApprovalDenied, None),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_any_other_answer_approves_nothing(gate, workspace, name):
    change, error, logged = ANSWERS[name]
    asked = gate.ask(BUNDLE, workspace, b"shown", "editor")
    given = {"hash_": BUNDLE.hash, "nonce": asked.nonce, "approved": True, **change(asked)}
    with pytest.raises(error):
        gate.answer(asked, **given)
    with pytest.raises(ApprovalRequired):
        gate.check(BUNDLE.hash, workspace)
    assert events(gate) == ([logged] if logged else [])


def test_the_nonce_of_one_question_does_not_answer_another(gate, workspace):
    first = gate.ask(BUNDLE, workspace, b"what was shown", "editor")
    second = gate.ask(BUNDLE, workspace, b"something else", "editor")
    with pytest.raises(HashMismatch):
        gate.answer(first, BUNDLE.hash, second.nonce, approved=True)
    gate.withdraw(first)
    with pytest.raises(ApprovalDenied):
        gate.answer(first, BUNDLE.hash, first.nonce, approved=True)
    assert first.nonce not in repr(first)


def test_an_answer_is_not_replayed(gate, workspace):
    asked = gate.ask(BUNDLE, workspace, b"shown", "terminal")
    gate.answer(asked, BUNDLE.hash, asked.nonce, approved=True)
    gate.revoke(BUNDLE.hash)
    with pytest.raises(ApprovalDenied):
        gate.answer(asked, BUNDLE.hash, asked.nonce, approved=True)
    with pytest.raises(ApprovalDenied, match="revoked"):
        gate.check(BUNDLE.hash, workspace)


def test_a_revocation_holds_everywhere_until_a_terminal_says_otherwise(gate, home, workspace, tmp_path):
    (tmp_path / "other").mkdir()
    approve(gate, workspace)
    approve(gate, tmp_path / "other", channel="editor")
    waiting = gate.ask(BUNDLE, workspace, b"shown", "terminal")
    assert gate.revoke(BUNDLE.hash) == 2
    for where in (workspace, tmp_path / "other"):
        with pytest.raises(ApprovalDenied, match="revoked"):
            gate.check(BUNDLE.hash, where)
    with pytest.raises(ApprovalDenied):
        gate.answer(waiting, BUNDLE.hash, waiting.nonce, approved=True)
    with pytest.raises(ApprovalDenied, match="only `lyma approve` in a terminal"):
        gate.ask(BUNDLE, workspace, b"shown", "editor")
    assert gate.records.revoked() == (BUNDLE.hash,)
    approve(gate, workspace)
    assert gate.check(BUNDLE.hash, workspace)
    assert gate.records.revoked() == ()
    with pytest.raises(ApprovalRequired):
        gate.check(BUNDLE.hash, tmp_path / "other")
    assert events(gate) == ["approved", "approved", "revoked", "approved"]


def test_a_revocation_while_the_editor_is_asking_wins(gate, home, clock, workspace):
    asked = gate.ask(BUNDLE, workspace, b"shown", "editor")
    Gate(home, clock=clock).revoke(BUNDLE.hash)
    with pytest.raises(ApprovalDenied, match="revoked"):
        gate.answer(asked, BUNDLE.hash, asked.nonce, approved=True)


def test_a_copied_record_counts_for_nothing(gate, home, workspace, tmp_path):
    (tmp_path / "other").mkdir()
    record = approve(gate, workspace)
    copied = home.approvals / record_name(BUNDLE.hash, str(tmp_path / "other"))
    copied.write_bytes(place(home, workspace).read_bytes())
    copied.chmod(0o600)
    with pytest.raises(HashMismatch):
        gate.check(BUNDLE.hash, tmp_path / "other")
    spoilt = home.approvals / record_name("sha256:" + "d" * 64, str(workspace))
    spoilt.write_bytes(b"{}")
    assert gate.records.all() == (record,)


def test_nothing_is_approved_that_cannot_be_logged(gate, home, workspace):
    home.audit.mkdir()
    with pytest.raises(LymaError, match="nothing was done"):
        approve(gate, workspace)
    assert not home.approvals.exists() or list(home.approvals.iterdir()) == []
    with pytest.raises(ApprovalRequired):
        gate.check(BUNDLE.hash, workspace)


def test_the_log_is_a_chain(home):
    audit = Audit(home.audit)
    for number in range(5):
        audit.append("approved", START + number, hash=BUNDLE.hash)
    lines = home.audit.read_bytes().splitlines()
    assert [json.loads(line)["previous"] for line in lines] == [FIRST, *map(hash_of, lines[:-1])]
    assert stat.S_IMODE(home.audit.stat().st_mode) == 0o600
    assert audit.verify() is None


TAMPERING = {
    "a changed line": (lambda lines: [*lines[:2], lines[2].replace(b"approved", b"rejected"), *lines[3:]], 4),
    "a line taken out": (lambda lines: [*lines[:2], *lines[3:]], 3),
    "lines swapped": (lambda lines: [lines[1], lines[0], *lines[2:]], 1),
    "a line put in": (lambda lines: [*lines[:3], lines[0], *lines[3:]], 4),
    "another spacing": (lambda lines: [lines[0].replace(b":", b": "), *lines[1:]], 1),
    "rubbish": (lambda lines: [*lines, b"{"], 6),
    "a list": (lambda lines: [*lines, b"[]"], 6),
}


@pytest.mark.parametrize("name", TAMPERING)
def test_tampering_with_the_log_is_found(home, name):
    tamper, line = TAMPERING[name]
    audit = Audit(home.audit)
    for number in range(5):
        audit.append("approved", START + number, hash=BUNDLE.hash)
    home.audit.write_bytes(b"\n".join([*tamper(home.audit.read_bytes().splitlines()), b""]))
    broken = audit.verify()
    assert isinstance(broken, Break)
    assert broken.line == line


def test_the_log_goes_on_after_a_crash_in_the_middle_of_a_line(home):
    audit = Audit(home.audit)
    audit.append("approved", START)
    with home.audit.open("ab") as file:
        file.write(b'{"event":"app')
    audit.append("revoked", START)
    assert [entry["event"] for entry in audit.entries()] == ["approved", "revoked"]
    assert audit.verify() == Break(2, "is not as it was written")


def test_a_log_that_is_not_there_is_whole(home):
    assert Audit(home.audit).verify() is None
    assert Audit(home.audit).entries() == ()
    home.audit.write_bytes(b"")
    home.audit.chmod(0o600)
    assert Audit(home.audit).verify() is None


def test_a_log_that_others_may_write_is_no_log(home):
    Audit(home.audit).append("approved", START)
    home.audit.chmod(0o622)
    for use in (lambda audit: audit.append("revoked", START), lambda audit: audit.verify()):
        with pytest.raises(LymaError, match="mend it"):
            use(Audit(home.audit))


def test_a_full_disk_is_told(home, monkeypatch):
    monkeypatch.setattr(os, "write", lambda _file, content: len(content) - 1)
    with pytest.raises(LymaError, match="nothing was done"):
        Audit(home.audit).append("approved", START)


APPENDING = """
import sys
from pathlib import Path
from lyma_server.factory.audit import Audit
for each in range(10):
    Audit(Path(sys.argv[1])).append("approved", 1, each=each)
"""


def test_many_processes_make_one_chain(home):
    children = [subprocess.Popen([sys.executable, "-c", APPENDING, str(home.audit)]) for _ in range(3)]
    assert [child.wait(60) for child in children] == [0, 0, 0]
    assert Audit(home.audit).verify() is None
    assert len(Audit(home.audit).entries()) == 30


@pytest.fixture
def factory(home, gate):
    made = Factory(home, CeilingSettings(), gate)
    made.store.save(BUNDLE)
    return made


def test_the_factory_admits_what_was_shown_and_approved(factory, workspace):
    with pytest.raises(ApprovalRequired):
        factory.admit(BUNDLE.hash, workspace)
    questioned = factory.question(BUNDLE.hash, workspace, "terminal")
    factory.answer(questioned, BUNDLE.hash, questioned.asked.nonce, approved=True)
    assert factory.admit(BUNDLE.hash, workspace) == BUNDLE
    assert [row.standing for row in factory.rows(workspace)] == ["approved"]


def test_what_changes_between_question_and_answer_is_not_approved(factory, home, workspace):
    questioned = factory.question(BUNDLE.hash, workspace, "terminal")
    stored = home.agents / BUNDLE.hash.replace(":", "-")
    stored.chmod(0o755)
    (stored / "instructions.md").chmod(0o644)
    (stored / "instructions.md").write_text("Do something else.\n")
    with pytest.raises(HashMismatch):
        factory.answer(questioned, BUNDLE.hash, questioned.asked.nonce, approved=True)
    with pytest.raises((HashMismatch, ApprovalRequired)):
        factory.admit(BUNDLE.hash, workspace)
    assert [row.standing for row in factory.rows(workspace)] == ["damaged"]


def test_rows_say_how_each_agent_stands(factory, home, clock, workspace):
    def standing():
        return [row.standing for row in factory.rows(workspace)]

    assert standing() == ["waiting"]
    approve(factory.gate, workspace)
    clock.now += RECORD_S
    assert standing() == ["expired"]
    place(home, workspace).write_text("{}")
    assert standing() == ["untrusted"]
    rewritten(place(home, workspace), **record_as_json(gate_record(workspace)) | {"workspace": "/"})
    assert standing() == ["untrusted"]
    factory.gate.revoke(BUNDLE.hash)
    assert standing() == ["revoked"]


def test_the_last_approved_bundle_of_a_name_is_found(factory, home, clock, workspace):
    assert factory.approved_before("plain") is None
    approve(factory.gate, workspace)
    assert factory.approved_before("plain") == BUNDLE
    newer = plain_bundle(budget__max_turns=13)
    clock.now += 1
    approve(factory.gate, workspace, newer)
    assert factory.approved_before("plain") == BUNDLE
    factory.store.save(newer)
    assert factory.approved_before("plain") == newer
    assert factory.approved_before("other") is None
    with pytest.raises(UsageError):
        factory.question(plain_bundle(name="x").hash, workspace, "terminal")


def test_an_agent_that_is_removed_loses_its_approvals_and_it_is_noted(home, workspace):
    factory = Factory(home, CeilingSettings())
    other = plain_bundle("other")
    for each in (BUNDLE, other):
        factory.store.save(each)
    approve(factory.gate, workspace)
    assert (factory.remove(BUNDLE.hash), factory.remove(other.hash)) == (1, 0)
    assert (factory.store.hashes(), factory.gate.records.all()) == ((), ())
    noted = [(entry["event"], entry["hash"]) for entry in factory.gate.audit.entries()]
    assert noted == [*((event, BUNDLE.hash) for event in ("approved", "revoked", "removed")), ("removed", other.hash)]
    assert factory.gate.audit.verify() is None
    factory.store.save(BUNDLE)
    assert factory.standing(BUNDLE.hash, workspace) == "revoked"


def test_where_the_log_cannot_be_written_nothing_is_removed(home, workspace):
    factory = Factory(home, CeilingSettings())
    factory.store.save(BUNDLE)
    home.audit.mkdir()
    with pytest.raises(LymaError, match="nothing was done"):
        factory.remove(BUNDLE.hash)
    assert factory.store.load(BUNDLE.hash) == BUNDLE


def test_a_program_goes_with_the_last_agent_that_has_it(home, tmp_path):
    factory = Factory(home, CeilingSettings())
    (tmp_path / "program").mkdir()
    (tmp_path / "program/main.py").touch()
    listing = adopt(tmp_path / "program", home.trees)
    agents = [with_program(plain_bundle(name), ["python3", "main.py"], listing) for name in ("one", "two")]
    for each in agents:
        factory.store.save(each)
    factory.remove(agents[0].hash)
    assert len(list(home.trees.iterdir())) == 1
    factory.remove(agents[1].hash)
    assert list(home.trees.iterdir()) == []
