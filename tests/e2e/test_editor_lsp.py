"""The server under pytest-lsp, whose client checks what it gets against the capabilities that it declared."""

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_lsp
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities
from pytest_lsp.client import make_test_lsp_client

from tests.raw_client import environment

# No postponed annotations: pytest-lsp reads those of the fixture.


def make_client() -> LanguageClient:
    client = make_test_lsp_client()
    client.heard = []

    @client.feature("lyma/event")
    def hear(params: Any) -> None:
        client.heard.append(params)

    return client


@pytest_lsp.fixture(
    config=ClientServerConfig(
        server_command=[sys.executable, "-m", "tests.editors.fake_server"],
        client_factory=make_client,
        server_env=environment(),
    ),
)
async def client(lsp_client: LanguageClient) -> AsyncIterator[None]:
    capabilities = client_capabilities("visual-studio-code")
    capabilities.experimental = {"lyma": {"protocolVersion": 1, "events": {}}}
    await lsp_client.initialize_session(types.InitializeParams(capabilities=capabilities))
    yield
    await lsp_client.shutdown_session()


async def test_ask(client: LanguageClient) -> None:
    client.progress_reports["one"] = []
    result = await client.protocol.send_request_async("lyma/ask", {"prompt": "say hello", "workDoneToken": "one"})
    assert (result.text, result.stopReason) == ("hello ", "end_turn")
    assert [event.type for event in client.heard][-1] == "turn.completed"
    kinds = [report.kind for report in client.progress_reports["one"]]
    assert (kinds[0], kinds[-1]) == ("begin", "end")


async def test_a_command_answers_in_a_document(client: LanguageClient) -> None:
    params = types.ExecuteCommandParams(command="lyma.ask", arguments=["say hello"])
    await client.workspace_execute_command_async(params)
    assert client.shown_documents[0].uri.endswith(".md")


async def test_cancel_and_go_on(client: LanguageClient) -> None:
    future = client.protocol.send_request("lyma/ask", {"prompt": "hang"}, msg_id=99)
    client.cancel_request(types.CancelParams(id=99))
    assert (await asyncio.wrap_future(future)).stopReason == "cancelled"


async def test_an_error_has_a_code(client: LanguageClient) -> None:
    with pytest.raises(JsonRpcException) as error:
        await client.protocol.send_request_async("lyma/nothing", {})
    assert error.value.code == -32601
