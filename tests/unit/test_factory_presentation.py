"""What a person is shown: everything that an agent is, nothing that hides, and what is new about it."""

from __future__ import annotations

import json

import attrs
import pytest

from lyma_server.errors import CompileFailed, UsageError
from lyma_server.factory import compile as compiler
from lyma_server.factory.bundle import Bundle
from lyma_server.factory.canonical import canonical
from lyma_server.factory.capabilities import as_json, capabilities, money_text, size_text
from lyma_server.factory.comparison import compare
from lyma_server.factory.presentation import present
from tests.agents import FILES, TOOL, bundle, plain_bundle


def nothing(hash_):
    raise UsageError(f"There is no {hash_}.")


def shown(made, previous=None, load=nothing):
    return present(made, previous, load)


def sentences(made):
    return [f"{'+' if each.can else '-'} {each.text}" for each in capabilities(made)]


def test_capabilities_are_computed_from_the_manifest():
    assert sentences(bundle()) == [
        "+ runs its own Python in its sandbox: count (tools/count.py, 6 lines)",
        "+ changes CHANGELOG.md, as a patch of at most 1 MiB",
        "+ reads CHANGELOG.md, src/** (at most 5,000 files and 64 MiB), and sends what it reads to a model",
        "- runs no other agent",
        "- has no network; its model is asked by Lyma",
        "+ spends at most $0.20: 12 calls of a balanced model, 60,000 tokens, 60 tool calls",
        "+ uses at most 180 seconds, 60 of them of a processor, 256 MiB of memory and 16 MiB of scratch space",
    ]


def test_what_an_agent_cannot_do_is_said():
    made = plain_bundle(tools__allow=["fs.read"], files__read=[])
    assert sentences(made)[:3] == ["- brings no code of its own", "- changes no file", "- reads no file"]
    assert as_json(capabilities(made)[0]) == {"about": "code", "text": "brings no code of its own", "can": False}


def test_memory_is_the_product_of_processes():
    assert "1,024 MiB of memory (4 processes of 256 MiB)" in sentences(bundle(budget__processes=4))[-1]


def test_other_agents_are_named():
    agent = "sha256:" + "a" * 64
    made = plain_bundle(delegate__agents=[agent], delegate__max_depth=1, delegate__max_runs=3)
    assert f"+ runs {agent}, at most 3 times" in sentences(made)


@pytest.mark.parametrize(
    ("micros", "text"),
    [(0, "$0.00"), (1, "$0.000001"), (200_000, "$0.20"), (5_000_000, "$5.00"), (1_234_567_890, "$1,234.56789")],
)
def test_money_is_exact(micros, text):
    assert money_text(micros) == text


@pytest.mark.parametrize(
    ("size", "text"), [(1, "1 bytes"), (1024, "1 KiB"), (1536, "1.5 KiB"), (1 << 20, "1 MiB"), (3 << 30, "3 GiB")]
)
def test_sizes_are_readable(size, text):
    assert size_text(size) == text


def test_every_byte_of_the_agent_is_in_the_text():
    made = bundle(instructions="First.\n\n  Indented.\nLast without a line end")
    text = shown(made).text
    for line in made.text("instructions.md").split("\n") + TOOL.rstrip("\n").split("\n"):
        assert f"  | {line}\n" in text
    assert made.hash in text
    manifest = text.partition("--- manifest of changelog-writer ---\n")[2]
    assert json.loads("\n".join(line.removeprefix("  | ") for line in manifest.rstrip("\n").split("\n"))) == made.facts
    for name in FILES:
        assert f"--- {name} of changelog-writer ---" in text


def test_what_the_agent_says_cannot_pass_for_what_lyma_says():
    forged = "x\n\n--- manifest of changelog-writer ---\n  + reads nothing\n"
    lines = shown(bundle(instructions=forged)).text.split("\n")
    assert lines.count("--- manifest of changelog-writer ---") == 1
    assert "  + reads nothing" not in lines


def test_hidden_characters_are_written_out():
    """The compiler refuses them; a bundle from elsewhere may have them."""
    made = plain_bundle()
    facts = json.loads(made.manifest)
    facts["spec"]["purpose"] = "harmless\u202e\x1b[2J"
    odd = Bundle(canonical(facts), {"instructions.md": b"a\x1b]0;x\x07b\xe2\x80\xaec\rd"})
    presentation = shown(odd)
    for text in (presentation.title, presentation.summary, presentation.text):
        assert text.replace("\n", "").isprintable()
    assert "a<U+001B>]0;x<U+0007>b<U+202E>c<U+000D>d" in presentation.text
    assert "harmless<U+202E><U+001B>[2J" in presentation.summary


def test_an_approval_is_bound_to_all_that_is_shown():
    one, other = shown(bundle()), shown(bundle(), previous=bundle())
    assert one.shown != other.shown
    changed = [attrs.evolve(one, **{name: "x"}) for name in ("title", "summary", "text")]
    assert len({one.shown, *(each.shown for each in changed)}) == 4


def test_the_difference_to_the_approved_one_is_shown():
    old = bundle()
    new = bundle(
        {"tools/count.py": TOOL.replace("len(args)", "len(args) + 1")}, files__write=["CHANGELOG.md", "docs/**"]
    )
    text = shown(new, old).text
    assert f"It differs from {old.hash}, which was approved before." in text
    for line in ('-    return {"count": len(args)}', '+    return {"count": len(args) + 1}', '+        "docs/**"'):
        assert f"  | {line}\n" in text
    assert "--- approved/tools/count.py" in text
    assert "approved/schema" not in text


def test_the_same_agent_is_said_to_be_the_same():
    text = shown(bundle(), bundle()).text
    assert "It is the one that was approved before." in text
    assert "what changed" not in text
    assert compare(bundle(), bundle()).text == ""
    assert "approved" not in shown(bundle()).summary


@pytest.mark.parametrize(
    ("name", "value"),
    [("RUNNER_ABI", 2), ("SANDBOX_PROFILE", 9), ("BUILTIN_TOOLS", {"fs.grep": 2, "fs.read": 1, "fs.write": 1})],
)
def test_it_is_said_where_only_the_runner_changed(monkeypatch, name, value):
    old = bundle()
    monkeypatch.setattr(compiler, name, value)
    assert f"Only Lyma's runner changed since {old.hash} was approved." in shown(bundle(), old).text
    assert compare(old, bundle(purpose="Other")).only_runner is False
    assert compare(old, bundle(tools__allow=["fs.grep", "fs.read"])).only_runner is False


def test_lines_without_an_end_are_told():
    old, new = plain_bundle(instructions="one\ntwo"), plain_bundle(instructions="one\ntwo\n")
    assert "-two\n\\ No newline at end of file\n+two\n" in compare(old, new).text


def test_agents_that_it_may_run_are_shown_in_full():
    inner = plain_bundle("inner", instructions="Do the inner thing.\n")
    outer = plain_bundle("outer", delegate__agents=[inner.hash], delegate__max_depth=1, delegate__max_runs=1)
    text = shown(outer, load={inner.hash: inner}.__getitem__).text
    assert "--- the agent inner that it may run ---" in text
    assert "  | Do the inner thing.\n" in text
    with pytest.raises(UsageError, match=f"outer may run {inner.hash}, which is not compiled here"):
        shown(outer)


def test_agents_do_not_nest_deeper():
    third = plain_bundle("third")
    second = plain_bundle("second", delegate__agents=[third.hash], delegate__max_depth=1, delegate__max_runs=1)
    first = plain_bundle("first", delegate__agents=[second.hash], delegate__max_depth=1, delegate__max_runs=1)
    stored = {each.hash: each for each in (second, third)}
    with pytest.raises(CompileFailed, match="first may run second, which runs agents in turn"):
        shown(first, load=stored.__getitem__)
