"""An answer that breaks off, through the real `lyma`: one whole answer comes out, of one model, and no half call is run."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from lyma_server.errors import StreamInterrupted
from lyma_server.router.router import Router
from tests.lyma import environment, run_lyma
from tests.routing import FORMATS, make_keys, make_provider, make_settings
from tests.routing import ask as route
from tests.stub_provider import Reply, StubProvider, call_tool, say

ERROR = {"type": "overloaded_error", "message": "Overloaded"}
ENDINGS: dict[str, dict[str, Any]] = {
    "cut": {"end": "cut"},
    "end without a finish": {"end": "eof"},
    "error": {"end": "error", "error": ERROR},
    "silence": {"end": "hang"},
    "keep-alives": {"end": "keep_alive"},
}
HALF = '{"path": "a.txt", "text": "half of'
UNFINISHED = json.dumps({"path": "a.txt", "text": "whole but not finished"})
PAIRS = list(zip(ENDINGS, itertools.cycle(FORMATS), strict=False))
"""Each ending in one format here and in the other one below."""
WHOLE = {"path": "a.txt", "text": "whole\n"}


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def ask(folder, api: str, bad: Reply, *good: Reply) -> tuple[list[dict[str, Any]], list[StubProvider]]:
    """The events and the result of one turn; `bad` answers first, at a provider of its own."""
    with StubProvider([bad]) as first, StubProvider(good) as second:
        env = environment(LYMA_ORDER="first,second", LYMA_ROUTER__BETWEEN_CONTENT_S="1")
        for name, stub in (("FIRST", first), ("SECOND", second)):
            url = stub.openai_url if api == "openai" else stub.anthropic_url
            env |= {f"LYMA_PROVIDERS__{name}__{key}": value for key, value in
                    (("BASE_URL", url), ("API", api), ("MODEL", name.lower()))}  # fmt: skip
        result = run_lyma("ask", "--json", "write a.txt", env=env, cwd=folder)
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()], [first, second]


@pytest.mark.parametrize(("ending", "api"), PAIRS)
def test_half_an_answer_is_void_and_the_next_one_is_whole(folder, api, ending):
    rows, (first, second) = ask(
        folder, api, say("The answer ", "BROKE", **ENDINGS[ending]), say("The answer ", "is 42.")
    )
    result = rows[-1]
    assert (result["text"], result["stopReason"]) == ("The answer is 42.", "end_turn")
    completed = [
        row["item"]["text"] for row in rows if row["type"] == "item.completed" and row["item"]["kind"] == "text"
    ]
    assert completed == ["The answer is 42."]
    discarded = {row["item"] for row in rows if row["type"] == "item.discarded"}
    kept = "".join(row["text"] for row in rows if row["type"] == "item.delta" and row["item"] not in discarded)
    assert kept == "The answer is 42."
    assert (len(first.requests), len(second.requests)) == (1, 1)
    assert "BROKE" not in second.requests[0].raw.decode()


@pytest.mark.parametrize(("ending", "api"), [(ending, FORMATS[api == FORMATS[0]]) for ending, api in PAIRS])
def test_a_call_that_broke_off_is_never_run(folder, api, ending):
    arguments = HALF if api == "openai" else UNFINISHED
    rows, (_, second) = ask(
        folder, api, call_tool("write_file", arguments, **ENDINGS[ending]), call_tool("write_file", WHOLE), say("Done.")
    )
    assert rows[-1]["text"] == "Done."
    assert (folder / "a.txt").read_text() == "whole\n"
    edits = [row["item"] for row in rows if row["type"] == "item.completed" and row["item"]["kind"] == "edit"]
    assert len(edits) == 1
    assert len(second.requests) == 2


def test_arguments_that_are_no_json_are_never_mended_and_run(folder):
    with StubProvider([call_tool("write_file", HALF)]) as stub:
        env = environment(
            LYMA_ORDER="only", LYMA_PROVIDERS__ONLY__BASE_URL=stub.openai_url, LYMA_PROVIDERS__ONLY__MODEL="m"
        )
        result = run_lyma("ask", "write a.txt", env=env, cwd=folder)
    assert not (folder / "a.txt").exists()
    assert len(stub.requests) == 3
    assert result.returncode == 4
    assert "arguments for a tool that are no JSON" in result.stderr


@pytest.mark.parametrize("ending", ["cut", "error"])
async def test_after_a_break_another_provider_is_asked_before_another_key(ending):
    """All keys of a provider that breaks off break off: to ask its next one would be to fail a second time."""
    with StubProvider([say("BROKE", **ENDINGS[ending])]) as bad, StubProvider([say("whole")]) as good:
        router = Router((make_provider(bad, keys=make_keys(3)), make_provider(good, name="two")), make_settings())
        broken, whole = await route(router), await route(router)
        await router.close()
    assert isinstance(broken.error, StreamInterrupted)
    assert (whole.error, whole.text) == (None, "whole")
    assert len(bad.requests) == 1


async def test_after_a_break_by_a_key_another_key_is_asked():
    limited = {"type": "rate_limit_error", "message": "Rate limit reached"}
    replies = [say("BROKE", end="error", error=limited), say("whole")]
    with StubProvider(replies) as first, StubProvider([say("other")]) as second:
        router = Router((make_provider(first, keys=make_keys(2)), make_provider(second, name="two")), make_settings())
        broken, whole = await route(router), await route(router)
        await router.close()
    assert isinstance(broken.error, StreamInterrupted)
    assert (whole.text, whole.keys) == ("whole", ["2"])


async def test_after_a_break_the_next_key_is_asked_where_there_is_no_other_provider():
    with StubProvider([say("BROKE", end="cut"), say("whole")]) as stub:
        router = Router((make_provider(stub, keys=make_keys(2)),), make_settings())
        broken, whole = await route(router), await route(router)
        await router.close()
    assert isinstance(broken.error, StreamInterrupted)
    assert (whole.text, whole.keys) == ("whole", ["2"])
