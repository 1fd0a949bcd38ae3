"""What agent.toml accepts: every setting is held to its kind, every limit to the ceiling, and every mistake has a place."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import attrs
import jsonschema
import pytest

from lyma_server.config import shape
from lyma_server.config.model import CeilingSettings
from lyma_server.errors import SpecInvalid
from lyma_server.factory import reference
from lyma_server.factory.compile import Source, compile_agent, examine
from lyma_server.factory.diagnostic import MOST
from lyma_server.factory.spec import Spec
from lyma_server.factory.spec_schema import render_schema
from lyma_server.factory.spec_text import LARGEST_TEXT, limits, read_spec
from lyma_server.factory.template import template, written
from tests.agents import EXAMPLES, LIMITS, bundle, codes, document, examined, source, text_of

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "agent.md"
PATHS = [leaf.path for leaf in shape.leaves(Spec)]
UNLIMITED = (0, -1, "unlimited", True, 1.5, [], 2**63 - 1)


def test_the_limits_of_these_tests_are_all_there_are():
    assert {path for path, _, _ in limits()} == set(LIMITS)


@pytest.mark.parametrize("value", [*UNLIMITED, ...], ids=repr)
def test_a_limit_is_given_and_finite(value):
    for path in LIMITS:
        found = examined(**{"__".join(path): value})
        assert {place for _, place in codes(found)} == {".".join(path)}


def test_a_limit_reaches_the_ceiling_and_no_further():
    for path, name, _ in limits():
        ceiling = attrs.evolve(CeilingSettings(), **{name: 7})
        others = {"__".join(each): 7 for each in LIMITS}
        assert examine(source(**others), ceiling).bundle is not None
        found = examine(source(**{**others, "__".join(path): 8}), ceiling)
        assert codes(found) == {("over_ceiling", ".".join(path))}


def test_the_ceiling_is_no_part_of_the_hash():
    assert compile_agent(source(), CeilingSettings(max_turns=40)) == compile_agent(source())


@pytest.mark.parametrize("value", [1.5, {"a": 1}, [[]], True, "\x00"], ids=repr)
def test_a_value_of_the_wrong_kind_is_named(value):
    for path in PATHS:
        places = {place for _, place in codes(examined(**{"__".join(path): value}))}
        assert {place.partition(" ")[0] for place in places} == {".".join(path)}


UNKNOWN = ["", "model", "tools", "files", "network", "budget", "delegate", "output"]


@pytest.mark.parametrize("table", UNKNOWN)
def test_an_unknown_key_is_an_error_with_its_line(table):
    path = f"{table}__shell" if table else "shell"
    made = document(**{path: 1})
    found = examine(Source(text_of(made), source().files))
    assert codes(found) == {("unknown_key", path.replace("__", "."))}
    line = found.diagnostics[0].line
    assert text_of(made).decode().split("\n")[line - 1] == "shell = 1"


def test_an_unknown_key_of_a_tool_is_an_error():
    tool = {"name": "count", "file": "tools/count.py", "schema": "schema/count.json", "network": "all"}
    assert codes(examined(tools__python=[tool])) == {("unknown_key", "tools.python (item 1).network")}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"lyma_agent": 2}, ("bad_value", "lyma_agent")),
        ({"name": "Big"}, ("bad_value", "name")),
        ({"name": "a" * 49}, ("bad_value", "name")),
        ({"name": "../up"}, ("bad_value", "name")),
        ({"purpose": "p" * 281}, ("too_large", "purpose")),
        ({"purpose": "two\nlines"}, ("bad_value", "purpose")),
        ({"instructions": "i" * (16 * 1024 + 1)}, ("too_large", "instructions")),
        ({"instructions": ...}, ("missing", "instructions")),
        ({"model__class": "gpt"}, ("bad_value", "model.class")),
        ({"model__provider": "openai"}, ("unknown_key", "model.provider")),
        ({"tools__allow": ["shell"]}, ("unknown_tool", "tools.allow (item 1)")),
        ({"network__mode": "all"}, ("bad_value", "network.mode")),
        ({"delegate__agents": ["sha256:12"]}, ("bad_value", "delegate.agents (item 1)")),
        ({"delegate__max_depth": 1}, ("over_ceiling", "delegate.max_depth")),
        ({"delegate__max_runs": 1}, ("over_ceiling", "delegate.max_runs")),
        ({"output__schema": "output.json"}, ("bad_path", "output.schema")),
        ({"files__read": ["a"] * 65}, ("too_large", "files.read")),
    ],
    ids=str,
)
def test_each_rule_has_a_code_and_a_place(changes, expected):
    assert codes(examined(**changes)) == {expected}


AGENT = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("depth", "runs", "sound"),
    [(1, 1, True), (1, 16, True), (0, 1, False), (2, 1, False), (1, 0, False), (1, 17, False)],
)
def test_delegation_is_bounded_by_fixed_caps(depth, runs, sound):
    found = examined(delegate__agents=[AGENT], delegate__max_depth=depth, delegate__max_runs=runs)
    assert (found.bundle is not None) is sound
    assert sound or {code for code, _ in codes(found)} == {"over_ceiling"}


def test_two_tools_of_one_name_are_refused():
    tool = {"name": "count", "file": "tools/count.py", "schema": "schema/count.json"}
    assert codes(examined(tools__python=[tool, tool])) == {("double_name", "tools.python (item 2).name")}


def test_too_many_tools_are_refused():
    tools = [{"name": f"t{n}", "file": "tools/count.py", "schema": "schema/count.json"} for n in range(17)]
    assert codes(examined(tools__python=tools)) == {("too_large", "tools.python")}


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        (b"a = 1\nb =\n", "bad_toml", 2),
        (b"a = 1\n\xff", "not_utf8", 2),
        (b"a = 1\n\n# \xe2\x80\xae\n", "hidden_character", 3),
        (b"\xef\xbb\xbfa = 1\n", "hidden_character", 1),
        (b"a" + b".a" * 30000 + b" = 1", "bad_toml", None),
        (b"a = " + b"[" * 20000, "bad_toml", 1),
        (b"#" * (LARGEST_TEXT + 1), "too_large", None),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_text_that_is_no_agent_at_all_is_explained(text, code, line):
    found = examine(Source(text))
    assert [(each.code, each.line) for each in found.diagnostics] == [(code, line)]


def test_a_flood_of_mistakes_is_cut_off():
    text = "".join(f"x{number} = 1\n" for number in range(2000)).encode()
    assert len(examine(Source(text)).diagnostics) == MOST


def test_the_error_holds_all_diagnostics_as_data():
    with pytest.raises(SpecInvalid) as caught:
        compile_agent(source(budget__max_turns=0, name="No"))
    first, second = caught.value.data["diagnostics"]
    assert {first["path"], second["path"]} == {"name", "budget.max_turns"}
    assert set(first) == {"code", "path", "line", "message", "hint", "file"}
    assert "1 more" in caught.value.message


def test_no_value_is_in_a_message():
    found = examined(purpose=["hunter2-hunter2"], name="hunter2-hunter2-Hunter2")
    assert "unter2" not in str(found.diagnostics)


def test_the_schema_accepts_the_examples_and_nothing_unknown():
    schema = render_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for path in EXAMPLES.glob("*/agent.toml"):
        assert list(validator.iter_errors(tomllib.loads(path.read_text()))) == []
    for path in LIMITS:
        assert not validator.is_valid(document(**{"__".join(path): 0}))
        assert not validator.is_valid(document(**{"__".join(path): ...}))
    for table in UNKNOWN:
        assert not validator.is_valid(document(**{f"{table}__shell" if table else "shell": 1}))


def test_the_template_compiles_and_keeps_to_a_low_ceiling():
    low = CeilingSettings(max_turns=2, max_files=3, max_output_bytes=10)
    for ceiling in (CeilingSettings(), low):
        found = examine(Source(template("todo-triage", ceiling).encode()), ceiling)
        assert found.diagnostics == ()
    assert found.bundle.facts["spec"]["budget"]["max_turns"] == 2


def test_a_specification_written_out_means_the_same():
    mistakes = []
    spec = read_spec(source().text, CeilingSettings(), mistakes)
    assert compile_agent(Source(written(spec).encode(), source().files)) == bundle()


def test_the_reference_is_up_to_date_and_whole():
    text = REFERENCE.read_text(encoding="utf-8")
    assert text == reference.render(), "run: python -m lyma_server.factory.reference > docs/reference/agent.md"
    for path in PATHS:
        assert re.search(rf"^\| `{path[-1]}` \|", text, re.MULTILINE), path
