"""What the compiler refuses in an agent's files and texts, each with a code, a place and a hint."""

from __future__ import annotations

import json
import sys

import pytest

from lyma_server.errors import CompileFailed
from lyma_server.factory.characters import find_hidden, visible
from lyma_server.factory.compile import Source, compile_agent
from lyma_server.factory.leaks import find_leak
from lyma_server.factory.schema_subset import parse_schema
from lyma_server.factory.tool_code import find_faults
from tests.agents import TOOL, bundle, codes, examined, source

HIDDEN = ["\u202e", "\u2066", "\u200b", "\u200d", "\ufeff", "\x00", "\x1b", "\x7f", "\x85", "\u2028", "\u00ad", "\u3164",
          "\ue000", "\U000e0041", "\U000e0100", "a\ufe0f\ufe0f", "\n\ufe0f", "\u0378"]  # fmt: skip
SEEN = ["é", "e\u0301", "漢字", "\u26a0\ufe0f", "𝄞", "\t", "\n", "“quotes”", "a\u00a0b"]


@pytest.mark.parametrize("character", HIDDEN, ids=ascii)
def test_hidden_characters_are_found_and_shown(character):
    text = f"first\nx{character}y"
    assert find_hidden(text) is not None
    assert find_hidden(visible(text)) is None
    assert "<U+" in visible(text)
    assert {code for code, _ in codes(examined(instructions=text))} == {"hidden_character"}
    for name, content in (
        ("tools/count.py", f"{TOOL}# {character}\n"),
        ("schema/count.json", f'{{"type": "object", "title": "{character}"}}'),
    ):
        found = examined({name: content.encode()})
        assert codes(found) == {("hidden_character", name)}


@pytest.mark.parametrize("text", SEEN, ids=ascii)
def test_what_can_be_seen_passes(text):
    assert find_hidden(f"x{text}y") is None
    assert visible(text) == text
    assert bundle(instructions=f"x{text}y")


def test_hiding_behind_an_escape_of_toml_or_json_does_not_help():
    escaped = source().text.replace(b"Summarise", b"Sum\\u202Emarise")
    assert {code for code, _ in codes(examined_text(escaped))} == {"hidden_character"}
    assert codes(examined({"schema/count.json": '{"type": "object", "title": "\\u202e"}'})) == {
        ("hidden_character", "schema/count.json")
    }


def examined_text(text: bytes):
    from lyma_server.factory.compile import examine

    return examine(Source(text, source().files))


SECRETS = {
    "anthropic": "sk-ant-api03-" + "aB3" * 10,
    "openai": "sk-proj-" + "aB3" * 10,
    "github": "ghp_" + "aB3" * 12,
    "google": "AIza" + "aB3" * 11,
    "aws": "AKIA" + "IOSFODNN7EXAMPLE",
    "slack": "xoxb-" + "123456789012-abcdef",
    "pem": "-----BEGIN " + "RSA PRIVATE KEY-----",
    "openssh": "-----BEGIN " + "OPENSSH PRIVATE KEY-----",
    "jwt": "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + "abcdefghijklmnop",
    "address": "postgres://app:" + "correct-horse@db.example/app",
    "assigned": 'api_key = "' + 'Zx81Zx81Zx81Zx81"',
}
INNOCENT = ["Use sk- as a prefix.", "tokens = count_tokens(text)", "the hf_model_configuration", "https://example.com/a:b@c", "api_key = os.environ['X']",
            "password: see the vault", "task-based-routing-of-requests-2024"]  # fmt: skip


@pytest.mark.parametrize("name", SECRETS)
def test_what_looks_like_a_secret_is_refused_and_not_repeated(name):
    secret = SECRETS[name]
    assert find_leak(secret) is not None
    for found in (
        examined(instructions=f"Use\n{secret}\n"),
        examined({"tools/count.py": f"{TOOL}\nKEY = '''{secret}'''\n"}),
        examined({"schema/count.json": json.dumps({"type": "object", "title": secret})}),
    ):
        assert {code for code, _ in codes(found)} == {"secret"}
        assert secret not in str(found.diagnostics)


@pytest.mark.parametrize("text", INNOCENT)
def test_what_only_sounds_like_a_secret_passes(text):
    assert find_leak(text) is None


GOOD_CODE = [
    TOOL,
    "def run(args):\n    return 1",
    "import os.path, json as j\nfrom collections.abc import Mapping\n\ndef run(args, /):\n    return helper(args)\n\ndef helper(args):\n    run = 1\n    return run\n",
    "def run(args: dict) -> dict:\n    def inner():\n        yield 1\n    return list(inner())\n",
    "class Box:\n    def run(self):\n        return 1\n\ndef run(args):\n    return Box().run()\n",
    "# -*- coding: utf-8 -*-\ndef run(args):\n    return '\\d'\n",
]
BAD_CODE = {
    "": "no_run",
    "run = lambda args: 1\n": "no_run",
    "async def run(args):\n    return 1\n": "no_run",
    "def run():\n    return 1\n": "no_run",
    "def run(args, more):\n    return 1\n": "no_run",
    "def run(args=None):\n    return 1\n": "no_run",
    "def run(*args):\n    return 1\n": "no_run",
    "def run(args, **more):\n    return 1\n": "no_run",
    "def run(arguments):\n    return 1\n": "no_run",
    "def run(args):\n    yield 1\n": "no_run",
    "@print\ndef run(args):\n    return 1\n": "no_run",
    "def run(args):\n    return 1\ndef run(args):\n    return 2\n": "no_run",
    "def run(args):\n    return 1\nrun = 2\n": "no_run",
    "def run(args):\n    return 1\nif True:\n    def run(args): return 2\n": "no_run",
    "def run(args):\n    return 1\nimport json as run\n": "no_run",
    "def run(args):\n    return 1\nfor run in (): pass\n": "no_run",
    "class A:\n    def run(args):\n        return 1\n": "no_run",
    "import requests\ndef run(args):\n    return 1\n": "foreign_import",
    "def run(args):\n    from numpy.linalg import norm\n    return 1\n": "foreign_import",
    "from . import other\ndef run(args):\n    return 1\n": "foreign_import",
    "from .other import x\ndef run(args):\n    return 1\n": "foreign_import",
    "import lyma_server\ndef run(args):\n    return 1\n": "foreign_import",
    "def run(args):\n    return 1 +\n": "bad_syntax",
    "def run(args):\n    return " + "(" * 3000 + ")" * 3000 + "\n": "bad_syntax",
    "def run(args):\n    return " + "-" * 50000 + "1\n": "bad_syntax",
    "# coding: latin-1\ndef run(args):\n    return 1\n": "not_utf8",
    "#!/x\n# vim: set fileencoding=utf-7 :\ndef run(args):\n    return 1\n": "not_utf8",
}  # fmt: skip


@pytest.mark.parametrize("code", GOOD_CODE, ids=range(len(GOOD_CODE)))
def test_code_that_holds(code):
    assert find_faults(code) == []
    assert bundle({"tools/count.py": code}).files["tools/count.py"] == code.encode()


@pytest.mark.parametrize("code", BAD_CODE, ids=range(len(BAD_CODE)))
def test_code_that_does_not_hold(code):
    assert {fault.code for fault in find_faults(code)} == {BAD_CODE[code]}
    assert {(each, name) for each, name in codes(examined({"tools/count.py": code}))} == {
        (BAD_CODE[code], "tools/count.py")
    }


def test_code_is_read_and_never_run(tmp_path, monkeypatch):
    sentinel = tmp_path / "ran"
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    code = f"open({str(sentinel)!r}, 'w').close()\nraise SystemExit\n\ndef run(args):\n    return 1\n"
    assert bundle({"tools/count.py": code})
    assert not sentinel.exists()


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"\xff\xfe", "not_utf8"),
        (b"#" * (64 * 1024 + 1), "too_large"),
        (b"def run(args):\r  return 1\n", "hidden_character"),
    ],
    ids=["bytes", "size", "carriage return"],
)
def test_files_that_cannot_be_code(content, code):
    assert codes(examined({"tools/count.py": content})) == {(code, "tools/count.py")}


def test_a_file_that_is_named_and_not_there():
    files = {name: text for name, text in source().files.items() if name != "tools/count.py"}
    with pytest.raises(CompileFailed) as caught:
        compile_agent(Source(source().text, files))
    assert caught.value.data["diagnostics"][0]["code"] == "missing_file"


def test_names_that_differ_in_case_only():
    tools = [
        {"name": "a", "file": "tools/count.py", "schema": "schema/count.json"},
        {"name": "b", "file": "tools/cOUNT.py", "schema": "schema/count.json"},
    ]
    found = examined({"tools/cOUNT.py": TOOL}, tools__python=tools)
    assert {code for code, _ in codes(found)} == {"case_twin"}


PATHS = ["/tools/a.py", "tools/../a.py", "../tools/a.py", "~/a.py", "tools\\a.py", "tools/a\x00.py", "tools/a/b.py", "tools/.a.py", "a.py", "tools/a.txt",
         "tools/é.py", "C:/tools/a.py", "tools/a.py/", "tools//a.py", "./tools/a.py", "tools/" + "a" * 61 + ".py"]  # fmt: skip


@pytest.mark.parametrize("path", PATHS, ids=ascii)
def test_paths_that_lead_elsewhere(path):
    found = codes(examined(tools__python=[{"name": "a", "file": path, "schema": "schema/count.json"}]))
    assert ("bad_path", "tools.python (item 1).file") in found


GOOD_SCHEMAS = [
    {"type": "object"},
    {
        "type": "object",
        "properties": {"a": {"type": ["string", "null"], "enum": ["x", None, 1, True]}},
        "additionalProperties": {"type": "integer"},
    },
    {
        "type": "object",
        "$defs": {"a": {"type": "string"}, "b": {"$ref": "#/$defs/a"}},
        "properties": {"b": {"$ref": "#/$defs/b"}},
    },
    {
        "type": "object",
        "properties": {"a": {"anyOf": [{"type": "string"}, {"const": 3}]}, "b": {"items": True, "minItems": 1}},
    },
]
DEEP: dict = {"type": "object"}
for _ in range(14):
    DEEP = {"type": "object", "properties": {"a": DEEP}}
BOMB = {
    "type": "object",
    "$defs": {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(20)} | {"d20": {"type": "string"}},
}
BAD_SCHEMAS = {
    "not json": "{",
    "no object": "[]",
    "another type": '{"type": "string"}',
    "no type": "{}",
    "duplicate names": '{"type": "object", "type": "object"}',
    "fraction": '{"type": "object", "properties": {"a": {"minimum": 0.5}}}',
    "exponent": '{"type": "object", "minProperties": 1e3}',
    "nan": '{"type": "object", "minimum": NaN}',
    "huge": '{"type": "object", "properties": {"a": {"minimum": 99999999999999999999}}}',
    "pattern": '{"type": "object", "properties": {"a": {"pattern": "(a+)+$"}}}',
    "pattern properties": '{"type": "object", "patternProperties": {"a": {}}}',
    "format": '{"type": "object", "properties": {"a": {"format": "regex"}}}',
    "remote": '{"type": "object", "properties": {"a": {"$ref": "https://example.com/s.json"}}}',
    "file": '{"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}}',
    "root reference": '{"type": "object", "properties": {"a": {"$ref": "#"}}}',
    "lost reference": '{"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}}',
    "circle": '{"type": "object", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"items": {"$ref": "#/$defs/a"}}}}',
    "dynamic": '{"type": "object", "$dynamicRef": "#a"}',
    "id": '{"type": "object", "$id": "https://example.com"}',
    "another dialect": '{"type": "object", "$schema": "http://json-schema.org/draft-07/schema#"}',
    "unknown keyword": '{"type": "object", "x-run": 1}',
    "condition": '{"type": "object", "if": {}}',
    "inner definitions": '{"type": "object", "properties": {"a": {"$defs": {}}}}',
    "bad value": '{"type": "object", "required": "a"}',
    "bad type": '{"type": ["object", "thing"]}',
    "no schema": '{"type": "object", "properties": {"a": 1}}',
    "odd name": '{"type": "object", "properties": {"a b": {}}}',
    "deep": json.dumps(DEEP),
    "bomb": json.dumps(BOMB),
    "deep json": "[" * 30000,
}  # fmt: skip


@pytest.mark.parametrize("schema", GOOD_SCHEMAS, ids=range(len(GOOD_SCHEMAS)))
def test_schemas_that_hold(schema):
    import jsonschema

    parsed, faults = parse_schema(json.dumps(schema))
    assert (parsed, faults) == (schema, [])
    jsonschema.Draft202012Validator.check_schema(schema)
    assert bundle({"schema/output.json": json.dumps(schema)})


@pytest.mark.parametrize("name", BAD_SCHEMAS)
def test_schemas_that_do_not_hold(name):
    assert parse_schema(BAD_SCHEMAS[name])[1]
    found = codes(examined({"schema/output.json": BAD_SCHEMAS[name]}))
    assert {code for code, _ in found} == {"bad_schema"}
