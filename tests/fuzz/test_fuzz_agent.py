"""agent.toml, however damaged: one bundle and always the same, or what stands against it and where."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from lyma_server.factory.compile import Source, examine
from tests.agents import FILES, source
from tests.fuzz.mutations import corpus, damaged, effort

EXAMPLES = Path(__file__).resolve().parents[2] / "examples/agents"
BESIDE = {name: text.encode() for name, text in FILES.items()}
WHOLE = source().text
SEEDS = (WHOLE, *(path.read_bytes() for path in sorted(EXAMPLES.glob("*/agent.toml"))), *corpus("agent"))
TOKENS = (
    *(
        b"\n[budget]\n",
        b"\n[[tools.python]]\n",
        b"\n[delegate]\n",
        b"agents = []\n",
        b"name = ",
        b"../",
        b"/etc/passwd",
        b"**",
    ),
    *(
        b"1e400",
        b"-1",
        b"9" * 30,
        b"\\ud800",
        b"\xff",
        b"\xe2\x80\xae",
        b"\xef\xbb\xbf",
        b"\0",
        b"sha256:" + b"0" * 64,
        b"'''",
        b"\r",
    ),
)


def check(given_source: Source) -> None:
    found = examine(given_source)
    assert found == examine(given_source)
    if found.bundle is not None:
        assert not found.diagnostics
        return
    assert found.diagnostics
    lines = given_source.text.count(b"\n") + given_source.text.count(b"\r") + 1
    for each in found.diagnostics:
        assert each.code
        assert each.message.endswith((".", "?"))
        assert each.hint
        assert each.line is None or each.file != "agent.toml" or 1 <= each.line <= lines


@pytest.mark.parametrize("text", SEEDS)
def test_the_corpus(text: bytes) -> None:
    check(Source(text, BESIDE))


@effort(120)
@given(text=damaged(SEEDS, TOKENS))
def test_it_is_compiled_or_refused(text: bytes) -> None:
    check(Source(text, BESIDE))


@effort(120)
@given(name=st.sampled_from(sorted(BESIDE)), data=st.data())
def test_so_are_the_files_beside_it(name: str, data: st.DataObject) -> None:
    tokens = (
        b"import os\n",
        b"{",
        b'"$ref"',
        b"1e400",
        b"\xff",
        b"\xe2\x80\xae",
        b"\0",
        b"[" * 80,
        b"def run(args):\n",
    )
    content = data.draw(damaged((*BESIDE.values(),), tokens))
    check(evolve(source(), files={**BESIDE, name: content}))
