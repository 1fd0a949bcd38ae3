"""Agents over stdio: the whole road with a scripted model, every rung of the ladder, and answers that count for nothing."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from lyma_server.protocol.agents import RequestApprovalParams
from lyma_server.protocol.convert import structure
from tests.agent_house import ABLE, PLAIN, SHOWN, House, press, say_yes
from tests.agent_script import NAME, SPEC, script
from tests.raw_client import UNANSWERED, Refusal
from tests.security.world import BWRAPS, LINUX

RUNS = pytest.mark.skipif(not BWRAPS, reason="this kernel or container lets bubblewrap do nothing")
pytestmark = LINUX


@pytest.fixture
def house(tmp_path):
    with House(tmp_path) as house:
        yield house


@RUNS
def test_the_whole_road(tmp_path):
    """A model drafts, compiles and runs; the person is asked once; the patch is applied; the nonce is nowhere else."""
    with House(tmp_path, script) as house:
        house.start(ABLE, request=say_yes)
        result = house.result("lyma/ask", prompt="keep the changelog")
        assert result["text"] == "All done."
        assert (house.root / "CHANGELOG.md").read_text() == "old\nnew\n"
        assert [edit["path"] for edit in result["edits"]] == [f".lyma/agents/{NAME}/agent.toml", "CHANGELOG.md"]
        [asked] = [structure(RequestApprovalParams, each) for each in house.asked]
        assert "changes CHANGELOG.md, as a patch" in asked.text
        assert asked.manifest["spec"]["name"] == NAME
        types = [event["type"] for event in house.client.events()]
        assert types.index("approval.requested") < types.index("approval.resolved")
        runs = [
            e["item"] for e in house.client.events() if e["type"] == "item.completed" and e["item"]["kind"] == "run"
        ]
        assert [(run["name"], run["status"], run["path"]) for run in runs] == [(NAME, "ok", [])]
        assert house.approvals("list").approvals[0].channel == "editor"
        told = [m for m in house.client.messages if m.get("method") != "lyma/requestApproval"]
        assert asked.nonce not in json.dumps(told)
        files = [path for path in house.home.rglob("*") if path.is_file()]
        assert not [path for path in files if asked.nonce.encode() in path.read_bytes()]
        assert asked.nonce.encode() not in bytes(house.client.errors)
        assert all(asked.nonce not in request.raw.decode() for request in house.stub.requests)


@RUNS
def test_run_by_the_person_and_one_byte_more_is_another_agent(tmp_path):
    with House(tmp_path, script) as house:
        house.start(ABLE, request=say_yes)
        hash_ = house.compiled()
        assert house.standing(hash_) == "waiting"
        run = house.do("run", hash=hash_, input={"n": 1}, workDoneToken="w").result
        assert (run.status, run.output, run.left) == ("ok", {"text": "One line was added."}, ())
        assert [edit.path for edit in run.edits] == ["CHANGELOG.md"]
        assert (house.home / run.patch).read_text().endswith("+new\n")
        assert (house.home / run.transcript).is_file()
        values = [p["value"] for p in house.client.notifications("$/progress")]
        assert (values[0]["kind"], values[-1]["kind"]) == ("begin", "end")
        assert house.standing(hash_) == "approved"
        assert len(house.asked) == 1
        house.client.answers["lyma/requestApproval"] = lambda _params: None
        house.write_spec(SPEC.replace("Read the", "Reed the"))
        other = house.do("compile", agent=NAME)
        assert (other.hash != hash_, other.approval) == (True, "waiting")
        assert house.kind("lyma/subagent", action="run", hash=other.hash) == "approval_unavailable"
        [manifest] = (house.home / "agents" / hash_.replace(":", "-")).glob("instructions.md")
        os.chmod(manifest.parent, 0o755)
        os.chmod(manifest, 0o644)
        manifest.write_bytes(manifest.read_bytes() + b" ")
        assert house.kind("lyma/subagent", action="run", hash=hash_) == "hash_mismatch"


def test_a_plain_client_is_shown_the_agent_and_prompted(house):
    house.start(PLAIN, show={"success": True}, prompt=press("Approve"))
    hash_ = house.compiled()
    assert house.approvals("approve", hash=hash_).state == "approved"
    shown, prompt = house.asked
    path = Path(shown["uri"].removeprefix("file://"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o400
    assert "  | Read the café's commits." in path.read_text()
    lines = prompt["message"].split("\n")
    assert hash_ in lines[0]
    assert len(lines) <= 3
    assert [action["title"] for action in prompt["actions"]] == [f"Approve {hash_[7:13]}…", "Reject"]
    assert prompt["type"] in (1, 2)
    assert house.standing(hash_) == "approved"


def test_a_client_that_lost_its_handler_steps_down(house):
    house.start({**ABLE, **PLAIN}, request=Refusal(-32601), show={"success": True}, prompt=press("Approve"))
    hash_ = house.compiled()
    assert house.approvals("approve", hash=hash_).state == "approved"
    assert len(house.asked) == 3


NOT_YES = [
    (
        ABLE,
        [
            ({"request": None}, "approval_unavailable"),
            ({"request": Refusal(-32603)}, "approval_unavailable"),
            ({"request": {"approved": True}}, "approval_unavailable"),
            ({"request": lambda p: {**say_yes(p), "approved": "true"}}, "approval_unavailable"),
            ({"request": lambda p: {**say_yes(p), "nonce": "another"}}, "approval_denied"),
            ({"request": lambda p: {**say_yes(p), "hash": "sha256:" + "0" * 64}}, "hash_mismatch"),
            ({"request": lambda p: {**say_yes(p), "approved": False}}, "approval_denied"),
        ],
    ),
    (
        PLAIN,
        [
            ({"show": SHOWN, "prompt": None}, "approval_unavailable"),
            ({"show": SHOWN, "prompt": {"title": "Approve"}}, "approval_unavailable"),
            ({"show": SHOWN, "prompt": press("Reject")}, "approval_denied"),
            ({"show": {"success": False}, "prompt": press("Approve")}, "approval_unavailable"),
            ({"show": Refusal(), "prompt": press("Approve")}, "approval_unavailable"),
            ({"show": SHOWN, "prompt": Refusal()}, "approval_unavailable"),
        ],
    ),
    ({}, [({"show": SHOWN, "prompt": press("Approve")}, "approval_unavailable")]),
]


@pytest.mark.parametrize(("capabilities", "rows"), NOT_YES, ids=["able", "plain", "neither"])
def test_whatever_is_no_plain_yes_approves_nothing(house, capabilities, rows):
    house.start(capabilities)
    hash_ = house.compiled()
    for answers, kind in rows:
        house.answer(**answers)
        error = house.client.call("lyma/subagent", {"action": "run", "hash": hash_})["error"]
        assert error["data"]["kind"] == kind, answers
        assert "lyma approve" in error["message"] or kind != "approval_unavailable"
    assert house.standing(hash_) == "waiting"
    assert list(house.home.glob("runs/*")) == []
    assert house.stub.requests == []


def waiting_nonce(house, hash_) -> tuple[int, str]:
    identity = house.client.request("lyma/approve", {"action": "approve", "hash": hash_})
    question = house.client.wait_for(lambda m: m.get("method") == "lyma/requestApproval")
    return identity, question["params"]["nonce"]


def test_a_question_is_answered_by_its_nonce_and_once(house):
    house.start(ABLE, request=UNANSWERED)
    hash_ = house.compiled()
    identity, nonce = waiting_nonce(house, hash_)
    assert [each.hash for each in house.approvals("list").pending] == [hash_]
    wrong = [("x", hash_), (nonce[:-1], hash_), ("", hash_), (nonce, "sha256:" + "0" * 64)]
    for given, named in wrong:
        assert house.kind("lyma/approve", action="approve", hash=named, nonce=given) == "approval_denied"
    assert house.approvals("approve", hash=hash_, nonce=nonce).state == "approved"
    assert house.client.reply(identity)["result"]["state"] == "approved"
    assert house.client.wait_for(lambda m: m.get("method") == "$/cancelRequest")
    assert house.kind("lyma/approve", action="approve", hash=hash_, nonce=nonce) == "approval_denied"
    house.approvals("revoke", hash=hash_)
    assert house.kind("lyma/approve", action="approve", hash=hash_, nonce=nonce) == "approval_denied"
    assert house.kind("lyma/approve", action="approve", hash=hash_) == "approval_denied"
    assert house.standing(hash_) == "revoked"


def test_a_cancelled_question_is_withdrawn_and_a_late_answer_is_ignored(house):
    house.start(ABLE, request=UNANSWERED)
    hash_ = house.compiled()
    identity = house.client.request("lyma/subagent", {"action": "run", "hash": hash_})
    question = house.client.wait_for(lambda m: m.get("method") == "lyma/requestApproval")
    house.client.notify("$/cancelRequest", {"id": identity})
    assert house.client.reply(identity)["result"]["result"]["status"] == "cancelled"
    assert house.client.event("approval.resolved")["state"] == "withdrawn"
    withdrawn = house.client.wait_for(lambda m: m.get("method") == "$/cancelRequest")
    assert withdrawn["params"]["id"] == question["id"]
    house.client.send({"jsonrpc": "2.0", "id": question["id"], "result": say_yes(question["params"])})
    nonce = question["params"]["nonce"]
    assert house.kind("lyma/approve", action="approve", hash=hash_, nonce=nonce) == "approval_denied"
    assert house.standing(hash_) == "waiting"
    assert house.approvals("list").pending == ()


def test_no_is_said_without_a_nonce(house):
    house.start(ABLE, request=UNANSWERED)
    hash_ = house.compiled()
    identity, _ = waiting_nonce(house, hash_)
    assert house.approvals("reject", hash=hash_).state == "rejected"
    assert house.client.reply(identity)["error"]["data"]["kind"] == "approval_denied"
    assert house.kind("lyma/approve", action="reject", hash=hash_) == "invalid_params"


def test_drafts_and_what_is_wrong_with_them(house):
    house.start(ABLE)
    drafted = house.do("draft", template="todo-triage")
    path = Path(drafted.uri.removeprefix("file://"))
    assert path == house.root / ".lyma" / "agents" / "todo-triage" / "agent.toml"
    assert house.do("show", hash=house.do("compile", uri=drafted.uri).hash).agent.title.startswith(
        "Approve the agent todo"
    )
    text = path.read_text().replace("max_turns = 12", "max_turns = 0")
    house.client.notify(
        "textDocument/didOpen",
        {"textDocument": {"uri": drafted.uri, "languageId": "toml", "version": 1, "text": text}},
    )
    [found] = house.do("compile", uri=drafted.uri).diagnostics
    assert (found.path, found.file) == ("budget.max_turns", "agent.toml")
    assert "max_turns" in text.splitlines()[found.line - 1]
    for params in ({"action": "draft"}, {"action": "compile"}, {"action": "run"}, {"action": "stop"}, {"action": "show"},
                   {"action": "draft", "template": "Bad Name"}, {"action": "stop", "run": "nothing"},
                   {"action": "compile", "agent": "none"}, {"action": "list", "root": "file:///"}):  # fmt: skip
        assert house.kind("lyma/subagent", **params) == "invalid_params", params
    assert house.kind("lyma/approve", action="show") == "invalid_params"
