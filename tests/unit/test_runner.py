"""What runs inside the sandbox, tried outside of it: its tools, its life, and its end of the channel."""

from __future__ import annotations

import ast
import json
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from lyma_server.factory import sandbox
from lyma_server.factory.channel import parse_message
from lyma_server.factory.runner import loop, wire
from lyma_server.factory.runner.files import LONGEST_LINE, MOST_LISTED, MOST_MATCHES, Files, ToolFault
from lyma_server.factory.runner.tools import LARGEST, LARGEST_TOGETHER, Tools, fitted, size
from lyma_server.factory.tool_specs import BUILTIN

SPEC = {"files": {"write": ["out/**", "a.txt"]}, "tools": {"python": []}, "output": {"schema": "schema/output.json"}}


@pytest.fixture
def root(tmp_path):
    for name, content in {
        "a.txt": "one\ntwo\nthree\n",
        "src/b.py": "import os\n" + "x" * 1000 + "\n",
        "src/deep/c.py": "import re\n",
        "empty": "",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    return tmp_path


@pytest.fixture
def files(root):
    return Files(["out/**", "a.txt"], root)


def test_there_is_a_tool_for_each_that_is_offered(files):
    assert files.tools.keys() == BUILTIN.keys()


def test_listing(files):
    assert files.list({}).split() == ["a.txt", "binary", "empty", "src/b.py", "src/deep/c.py"]
    assert files.list({"glob": "src/**"}).split() == ["src/b.py", "src/deep/c.py"]
    assert files.list({"glob": "*.md"}) == "[no files]"
    files.write({"path": "out/new.md", "text": ""})
    assert files.list({"glob": "out/*"}) == "out/new.md"


def test_a_long_list_is_cut(files):
    for number in range(MOST_LISTED + 1):
        files.write({"path": f"out/{number}", "text": ""})
    lines = files.list({"glob": "out/**"}).splitlines()
    assert len(lines) == MOST_LISTED + 1
    assert lines[-1] == "[1 more; name a narrower glob]"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "1\tone\n2\ttwo\n3\tthree"),
        ({"first": 2}, "2\ttwo\n3\tthree"),
        ({"last": 1}, "1\tone"),
        ({"first": 2, "last": 2}, "2\ttwo"),
        ({"first": 3, "last": 99}, "3\tthree"),
        ({"first": 3, "last": 2}, "[no lines]"),
    ],
)
def test_reading_lines(files, arguments, told):
    assert files.read({"path": "a.txt", **arguments}) == told


@pytest.mark.parametrize("path", ["nothing", "src", "../a.txt", "/etc/passwd", "src/../a.txt", "a\0b", "", "binary"])
def test_what_cannot_be_read(files, path):
    with pytest.raises(ToolFault):
        files.read({"path": path})


def test_reading_beyond_the_end_and_nothing(files):
    with pytest.raises(ToolFault, match="has 3 lines"):
        files.read({"path": "a.txt", "first": 4})
    assert files.read({"path": "empty"}) == "[no lines]"


def test_searching(files):
    assert files.grep({"pattern": "^t"}) == "a.txt:2:two\na.txt:3:three"
    assert files.grep({"pattern": "import", "glob": "src/**"}) == "src/b.py:1:import os\nsrc/deep/c.py:1:import re"
    assert files.grep({"pattern": "x+$"}) == "src/b.py:2:" + "x" * LONGEST_LINE
    assert files.grep({"pattern": "nowhere"}) == "[no matches]"
    with pytest.raises(ToolFault, match="regular expression"):
        files.grep({"pattern": "("})
    files.write({"path": "out/many", "text": "t\n" * (MOST_MATCHES + 1)})
    assert files.grep({"pattern": "t", "glob": "out/*"}).splitlines()[-1] == "[and more; search for less]"


def test_writing_is_kept_and_seen_and_bounded(files, root):
    assert files.write({"path": "a.txt", "text": "né\n"}) == "a.txt was written, 4 bytes."
    assert files.read({"path": "a.txt"}) == "1\tné"
    assert files.changed == {"a.txt": "né\n"}
    assert (root / "a.txt").read_text() == "one\ntwo\nthree\n"
    for path in ("b.txt", "out/.env", "out/.git/hooks/x", "out/../x", "/out/x", "OUT/x"):
        with pytest.raises(ToolFault, match="You may not write"):
            files.write({"path": path, "text": ""})


def tools_with(root, code):
    (root / "tools").mkdir(exist_ok=True)
    (root / "tools/t.py").write_text(code)
    return Tools(Files([], root), [{"name": "t", "file": "tools/t.py", "schema": "-"}], root)


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("def run(args):\n    return 'text'", ("text", False)),
        ("def run(args):\n    return {'n': [1, 0.5, None, 'é']}", ('{"n": [1, 0.5, null, "é"]}', False)),
        ("def run(args):\n    return args['x']", ("3", False)),
        ("import json\ndef run(args):\n    return json.dumps(args)", ('{"x": 3}', False)),
        ("def run(args):\n    return 1 / 0", ("t failed: ZeroDivisionError: division by zero", True)),
        ("def run(args):\n    raise SystemExit(1)", ("t failed: SystemExit: 1", True)),
        ("def run(args):\n    raise MemoryError", ("t ran out of memory.", True)),
        ("import nothing_such\ndef run(args): ...", ("t failed: ModuleNotFoundError: No module named 'nothing_such'", True)),
    ],
)  # fmt: skip
def test_an_agents_own_tool(root, code, told):
    assert tools_with(root, code).run("t", {"x": 3}) == told


@pytest.mark.parametrize("result", ["float('nan')", "{1}", "object()", "b''"])
def test_what_is_no_json_is_the_tools_error(root, result):
    text, failed = tools_with(root, f"def run(args):\n    return {result}").run("t", {})
    assert failed
    assert text.startswith("t failed: ")


def test_a_tool_is_loaded_once_and_keeps_what_it_knows(root):
    tools = tools_with(root, "seen = []\ndef run(args):\n    seen.append(1)\n    return len(seen)")
    assert [tools.run("t", {})[0] for _ in range(3)] == ["1", "2", "3"]
    assert tools.run("other", {}) == ("There is no tool other.", True)


@pytest.mark.parametrize("letter", ["x", "é", "\0", '"', "\U0001f600", "\ud800"])
@pytest.mark.parametrize("calls", [1, 40, 200])
def test_results_fit_one_message(letter, calls):
    text = fitted(letter * 1_000_000, calls)
    assert size(text) <= min(LARGEST, LARGEST_TOGETHER // calls)
    assert text.endswith("[cut; ask for less]")
    assert fitted("short", calls) == "short"
    text.encode()


class Parent:
    """Answers in turn, and keeps what it was asked."""

    def __init__(self, *answers):
        self.asked = []
        self._answers = list(answers)

    def begin(self, kind, **fields):
        self.asked.append((kind, fields))
        return len(self.asked)

    def answer(self, _number):
        return self._answers.pop(0)

    def ask(self, kind, **fields):
        return self.answer(self.begin(kind, **fields))


def step(text="", *calls):
    return {"text": text, "tool_calls": [{"id": str(at), "name": name, "arguments": arguments} for at, (name, arguments) in enumerate(calls)]}  # fmt: skip


def life(*answers, spec=SPEC):
    parent = Parent(*answers)
    loop.Life(spec, parent).live()
    return parent.asked


YES, NO = {"accepted": True}, {"accepted": False, "problem": "no"}


def test_a_life_without_calls():
    assert life(step('{"a": 1}'), YES) == [("llm.step", {"append": []}), ("result", {"output": {"a": 1}})]
    asked = life(step("plain"), YES, spec={**SPEC, "output": {"schema": ""}})
    assert asked[-1] == ("result", {"output": {"text": "plain"}})


@pytest.mark.parametrize(
    ("text", "output"),
    [("```json\n[1]\n```", [1]), (" ```\n{}\n```\n", {}), ("no JSON", "no JSON"), ("[" * 99_999, "[" * 99_999)],
)
def test_answers_are_parsed(text, output):
    assert life(step(text), YES)[-1] == ("result", {"output": output})


def test_what_is_not_accepted_is_tried_again():
    asked = life(step("1"), NO, step("2"), YES)
    assert [kind for kind, _ in asked] == ["llm.step", "result", "llm.step", "result"]


def test_calls_are_answered_in_order_and_agents_run_side_by_side():
    child = ("agent.run", {"hash": "sha256:1", "input": 1})
    reply = {"status": "ok", "output": {"x": 1}, "error": None}
    failed = {"status": "crashed", "output": None, "error": "it broke"}
    asked = life(step("", child, ("nothing", {}), child), reply, failed, step("1"), YES)
    assert [kind for kind, _ in asked] == ["llm.step", "agent.run", "agent.run", "llm.step", "result"]
    assert [(each["call"], each["is_error"]) for each in asked[3][1]["append"]] == [
        ("0", False),
        ("1", True),
        ("2", True),
    ]
    assert json.loads(asked[3][1]["append"][0]["text"]) == reply


def test_changed_files_are_sent_in_pieces_before_the_result():
    text = "é" * loop.PIECE
    write = ("fs.write", {"path": "out/x", "text": text})
    asked = life(step("", write), step("{}"), YES, YES, YES)
    assert [(kind, fields.get("more")) for kind, fields in asked[2:]] == [("put_file", True), ("put_file", False), ("result", None)]  # fmt: skip


def test_the_wire(monkeypatch):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        monkeypatch.setattr(wire, "DESCRIPTOR", theirs.fileno())
        requests = wire.Requests()
        first, second = requests.begin("agent.run", input=1), requests.begin("agent.run", input=2)
        for number in (second, first):
            body = json.dumps({"type": "reply", "id": number, "n": number}).encode()
            ours.sendall(struct.pack("!I", len(body)) + body)
        assert (requests.answer(first)["n"], requests.answer(second)["n"]) == (first, second)
        length = struct.unpack("!I", ours.recv(4))[0]
        assert parse_message(ours.recv(length)) == {"type": "agent.run", "id": 1, "input": 1}


def test_only_the_standard_library_and_what_goes_along_is_imported():
    given = {name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in sandbox.runner_files()}
    for name, content in sandbox.runner_files().items():
        for node in ast.walk(ast.parse(content)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            for each in names:
                known = each in given or each.rpartition(".")[0] in given
                assert known or each.partition(".")[0] in sys.stdlib_module_names, (name, each)


def test_it_runs_on_the_systems_python_alone(tmp_path):
    for name, content in sandbox.runner_files().items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from lyma_server.factory.runner import loop; from lyma_server.factory import globs"
    python = next((path for path in ("/usr/bin/python3", sys.executable) if Path(path).exists()), sys.executable)
    subprocess.run([python, "-I", "-S", "-B", "-c", code], check=True, timeout=60)
