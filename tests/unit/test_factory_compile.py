"""One meaning, one hash; another meaning, another hash; and the hash depends on nothing else."""

from __future__ import annotations

import ast
import hashlib
import json
import random
import statistics
import subprocess
import sys
import time
import unicodedata
from pathlib import Path

import pytest

from lyma_server.config.model import CeilingSettings
from lyma_server.factory import compile as compiler
from lyma_server.factory.compile import Source, compile_agent
from lyma_server.factory.reader import read_agent
from lyma_server.factory.template import toml
from tests.agents import EXAMPLES, FILES, LIMITS, SCHEMA, TOOL, bundle, document, source

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "agents"
HASH = bundle().hash


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.json")), ids=lambda path: path.stem)
def test_the_golden_vectors(path):
    vector = json.loads(path.read_text(encoding="utf-8"))
    files = {name: text.encode() for name, text in vector["files"].items()}
    made = compile_agent(Source(vector["text"].encode(), files))
    assert made.manifest.decode() == vector["manifest"]
    assert {name: content.decode() for name, content in made.files.items()} == vector["bundle"]
    assert made.hash == vector["hash"] == "sha256:" + hashlib.sha256(vector["manifest"].encode()).hexdigest()


def test_the_manifest_binds_every_file_and_every_default():
    made = bundle()
    facts = json.loads(made.manifest)
    assert facts["files"] == {
        name: {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
        for name, content in made.files.items()
    }
    assert set(made.files) == {"instructions.md", *FILES}
    assert facts["spec"]["network"] == {"mode": "none"}
    assert facts["spec"]["delegate"] == {"agents": [], "max_depth": 0, "max_runs": 0}
    assert (facts["kind"], facts["format"]) == ("data", 1)
    assert facts["builtin_tools"] == {"fs.grep": 1, "fs.read": 1, "fs.write": 1}
    again = json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    assert made.manifest == again.encode()


DEFAULTS = {
    "network": {"mode": "none"},
    "delegate": {"agents": [], "max_depth": 0, "max_runs": 0},
    "model": {"class": "balanced"},
}


def spelt(made: dict, luck: random.Random) -> bytes:
    """One agent as somebody else might write it."""
    made = {name: shuffled(value, luck) for name, value in made.items()}
    for section, defaults in DEFAULTS.items():
        for name, value in defaults.items():
            if luck.random() < 0.5:
                made.setdefault(section, {})[name] = value
    for name in ("read", "write"):
        globs = [*made["files"][name], *luck.choices(made["files"][name], k=2)]
        made["files"][name] = luck.sample(globs, len(globs))
    made["tools"]["allow"] = luck.sample(made["tools"]["allow"] * 2, 6)
    lines = []
    for name, value in shuffled(made, luck).items():
        if not isinstance(value, dict):
            lines.append(setting(name, value, luck))
    for name, value in shuffled(made, luck).items():
        if isinstance(value, dict):
            lines += [
                f"{blank(luck)}[{blank(luck)}{name} ]{comment(luck)}",
                *(setting(each, inner, luck) for each, inner in value.items()),
            ]
    text = "\n".join(lines) + "\n" * luck.randrange(3)
    text = unicodedata.normalize(luck.choice(["NFC", "NFD"]), text)
    return text.replace("\n", luck.choice(["\n", "\r\n"])).encode()


def shuffled(value, luck: random.Random):
    return dict(luck.sample(list(value.items()), len(value))) if isinstance(value, dict) else value


def setting(name: str, value, luck: random.Random) -> str:
    name = luck.choice([name, f'"{name}"', f"'{name}'"])
    return f"{comment(luck)}\n{blank(luck)}{name}{blank(luck)}={blank(luck)}{valued(value, luck)}{comment(luck)}"


def valued(value, luck: random.Random) -> str:
    if isinstance(value, int):
        return luck.choice([str(value), f"{value:_}", hex(value), f"+{value}"])
    if isinstance(value, list):
        inner = f",{luck.choice(['', ' ', chr(10)])}".join(valued(each, luck) for each in value)
        return f"[{inner}{luck.choice(['', ',']) if value else ''}{luck.choice(['', chr(10)])}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {toml(each)}" for name, each in shuffled(value, luck).items()) + "}"
    escaped = "".join(f"\\u{ord(each):04X}" if luck.random() < 0.05 else each for each in value)
    if "\n" in value:
        return luck.choice([toml(value), f"'''\n{value}'''", json.dumps(value), f'"""{escaped}"""'])
    return luck.choice([toml(value), f"'{value}'", f'"{escaped}"', json.dumps(value)])


def blank(luck: random.Random) -> str:
    return luck.choice(["", " ", "\t", "   "])


def comment(luck: random.Random) -> str:
    return luck.choice(["", "", "  # a note", " #= [x]"])


def spelt_files(luck: random.Random) -> dict[str, bytes]:
    """The files with other line ends, forms and spacing."""
    schema = json.dumps(shuffled(SCHEMA, luck), indent=luck.choice([None, 1, 4]), ensure_ascii=luck.random() < 0.5)
    if luck.random() < 0.5:
        schema = schema.replace("{", '{"$schema": "https://json-schema.org/draft/2020-12/schema", ', 1)
    files = {"tools/count.py": TOOL, "schema/count.json": schema, "schema/output.json": json.dumps(SCHEMA)}
    end = luck.choice(["\n", "\r\n"])
    return {name: text.replace("\n", end).encode() for name, text in files.items()}


def test_a_thousand_spellings_have_one_hash():
    luck = random.Random(20_261_130)
    made, seen = document(), set()
    for _ in range(1000):
        spelling = Source(spelt(made, luck), spelt_files(luck))
        seen.add(spelling.text)
        assert compile_agent(spelling).hash == HASH, spelling.text.decode()
    assert len(seen) > 990


AGENT = "sha256:" + "a" * 64
OTHER_TOOL = {"name": "count", "file": "tools/count.py", "schema": "schema/output.json"}
MEANINGS = {
    **{"__".join(path): value + (1 if value < 5000 else -1) for path, value in LIMITS.items()},
    "name": "changelog-writes",
    "purpose": "Summarise commits.",
    "instructions": "Read the café's commits.\nWrite a line for each.\n\n",
    "model__class": "strong",
    "tools__allow": ["fs.grep", "fs.read"],
    "tools__python": [OTHER_TOOL],
    "files__read": ["CHANGELOG.md", "src/*"],
    "files__write": [],
    "output__schema": "",
}
TOGETHER = {
    "delegate__agents": {"delegate__agents": [AGENT], "delegate__max_depth": 1, "delegate__max_runs": 1},
    "delegate__max_runs": {"delegate__agents": [AGENT], "delegate__max_depth": 1, "delegate__max_runs": 2},
}
ONLY_ONE_VALUE = {"lyma_agent", "network__mode", "delegate__max_depth"}


def test_every_change_of_meaning_has_another_hash():
    changes = [*({path: value} for path, value in MEANINGS.items()), *TOGETHER.values()]
    hashes = [bundle(**change).hash for change in changes]
    files = [{name: text.replace("count", "counts").replace('"text"', '"texts"')} for name, text in FILES.items()]
    hashes += [bundle(each).hash for each in files]
    assert len({HASH, *hashes}) == len(hashes) + 1


def test_every_setting_is_among_them():
    from lyma_server.config import shape
    from lyma_server.factory.spec import Spec

    assert {"__".join(leaf.path) for leaf in shape.leaves(Spec)} == {*MEANINGS, *TOGETHER, *ONLY_ONE_VALUE}


@pytest.mark.parametrize(
    ("name", "value"),
    [("RUNNER_ABI", 2), ("SANDBOX_PROFILE", 2), ("BUILTIN_TOOLS", {"fs.grep": 1, "fs.read": 1, "fs.write": 2})],
)
def test_another_runner_has_another_hash(monkeypatch, name, value):
    monkeypatch.setattr(compiler, name, value)
    assert bundle().hash != HASH


PROGRAM = f"""
import os, sys
sys.path.insert(0, {str(ROOT)!r})
os.umask(int(sys.argv[1], 8))
from tests.agents import bundle
print(bundle().hash)
"""


@pytest.mark.parametrize(
    ("umask", "environment"),
    [
        ("000", {"LANG": "C", "LC_ALL": "C", "PYTHONHASHSEED": "1", "TZ": "Asia/Tokyo"}),
        ("077", {"LANG": "tr_TR.UTF-8", "LC_ALL": "tr_TR.UTF-8", "PYTHONHASHSEED": "4242", "TZ": "America/New_York", "PYTHONUTF8": "0"}),
    ],
)  # fmt: skip
def test_the_hash_depends_on_no_surroundings(tmp_path, umask, environment):
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, umask],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.strip() == HASH


def test_the_compiler_looks_at_nothing_but_its_arguments():
    """No module of it that a clock, a disk, a network or an environment could be reached by."""
    pure = ("compile", "spec", "spec_kinds", "spec_text", "bundle", "canonical", "characters", "leaks", "globs", "protected",
            "wildcard", "schema_subset", "tool_code", "diagnostic", "versions")  # fmt: skip
    for name in pure:
        tree = ast.parse((ROOT / "lyma_server" / "factory" / f"{name}.py").read_text())
        imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        assert imported.isdisjoint(
            {"os", "time", "datetime", "random", "locale", "socket", "subprocess", "platform", "importlib"}
        ), name
        called = {
            node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert called.isdisjoint({"open", "exec", "eval", "__import__", "input"}), name


def test_a_typical_agent_compiles_in_a_few_milliseconds():
    given, _ = read_agent(EXAMPLES / "test-gap-finder")
    times = []
    for _ in range(9):
        start = time.process_time()
        compile_agent(given)
        times.append(time.process_time() - start)
    assert statistics.median(times) < 0.020


def test_the_ceiling_can_only_refuse():
    assert compile_agent(source(), CeilingSettings(max_turns=12)).hash == HASH
