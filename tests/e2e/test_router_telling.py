"""What the person is told beside the answer, or in its place."""

from __future__ import annotations

import pytest

from lyma_server.errors import AllFailed
from lyma_server.router.chat import Message, Remark, Text, ToolCall, ToolResult
from lyma_server.router.router import Router
from tests.routing import FORMATS, ask, make_keys, make_provider, make_settings
from tests.stub_provider import StubProvider, fail, say

UNKNOWN_MODEL = fail(404, {"error": {"message": "The model does not exist", "code": "model_not_found"}})


@pytest.mark.parametrize("api", FORMATS)
async def test_what_is_left_out_of_a_conversation_that_is_too_long_is_told(api: str) -> None:
    messages = (
        Message("user", (Text("first"),)),
        Message("assistant", (ToolCall("c1", "read_file", {"path": "a"}),)),
        Message("user", (ToolResult("c1", "x" * 20_000),)),
        Message("assistant", (Text("said"),)),
        Message("user", (Text("and now?"),)),
    )
    with StubProvider(lambda request: fail(413) if len(request.raw) > 10_000 else say("short")) as stub:
        router = Router((make_provider(stub, api),), make_settings())
        outcome = await ask(router, messages=messages)
        await router.close()
    assert outcome.text == "short"
    assert outcome.route == [("payload_too_large", "shrink"), ("ok", "done")]
    told = [event.text for event in outcome.events if isinstance(event, Remark)]
    assert told == ["The conversation is too long for one: older parts of it are left out."]
    sent = stub.requests[1].raw.decode()
    assert "Be brief." in sent
    assert "and now?" in sent


@pytest.mark.parametrize("api", FORMATS)
async def test_a_model_that_is_not_there_is_named_beside_those_that_are_like_it(api: str) -> None:
    models = ("big-model-2", "small-model-1", "embedding")
    with StubProvider([UNKNOWN_MODEL], models=models) as stub:
        router = Router((make_provider(stub, api, model="big-modle-2", keys=make_keys(2)),), make_settings())
        outcomes = [await ask(router) for _ in range(2)]
        await router.close()
    for outcome in outcomes:
        assert isinstance(outcome.error, AllFailed)
        assert outcome.error.message.startswith("one (2 keys) does not have the model big-modle-2")
        assert "one lists big-model-2, small-model-1." in outcome.error.message


async def test_where_the_list_cannot_be_had_the_error_is_the_same_without_it() -> None:
    with StubProvider([UNKNOWN_MODEL], listing=fail(500)) as stub:
        router = Router((make_provider(stub, model="gone"),), make_settings())
        outcome = await ask(router)
        await router.close()
    assert isinstance(outcome.error, AllFailed)
    assert outcome.error.message.endswith("(see `lyma models`).")
