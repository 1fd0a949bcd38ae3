"""Whatever the SDKs and what lies below them can raise becomes facts, and a class that is known."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from typing import TYPE_CHECKING, Any

import anthropic
import httpx2
import openai
import pytest

from lyma_server.router.chat import Origin
from lyma_server.router.policy import CLASSES, decide
from lyma_server.router.providers.base import AttemptFailed
from lyma_server.router.providers.connect import name_transport_error
from lyma_server.router.providers.exchange import Exchange
from lyma_server.router.providers.openai_stream import OpenAIAssembler
from lyma_server.router.watchdog import Patience, Watchdog

if TYPE_CHECKING:
    from types import ModuleType

REQUEST = httpx2.Request("POST", "http://127.0.0.1/v1")
SECRET = "sk-canary-0123456789abcdef"


def exported(module: ModuleType) -> list[type[Exception]]:
    names = [getattr(module, name) for name in dir(module)]
    return sorted({one for one in names if isinstance(one, type) and issubclass(one, Exception)}, key=str)


def make(kind: type[Exception]) -> Exception:
    """An instance that holds a secret wherever one may be."""
    error = kind.__new__(kind)
    Exception.__init__(error, SECRET)
    status = getattr(kind, "status_code", None)
    if isinstance(status, int) or "Status" in kind.__name__:
        status = status if isinstance(status, int) else 418
        error.__dict__["response"] = httpx2.Response(status, text=SECRET, request=REQUEST)
    return error


async def failure_of(error: Exception, status_errors: type[Exception]) -> AttemptFailed:
    async def send() -> httpx2.Response:
        raise error

    loop = asyncio.get_running_loop()
    watchdog = Watchdog(Patience(60, 60, 60, loop.time() + 60))
    exchange = Exchange("vendor", OpenAIAssembler(Origin("p", "m")), watchdog, lambda _: False)
    with pytest.raises(AttemptFailed) as caught:
        await exchange.open(send, status_errors)
    watchdog.stop()
    return caught.value


@pytest.mark.parametrize("sdk", [openai, anthropic], ids=["openai", "anthropic"])
async def test_every_exception_of_the_sdks_and_below_is_classified(sdk: Any) -> None:
    kinds = [*exported(sdk), *exported(httpx2), json.JSONDecodeError, OSError, ssl.SSLError, TimeoutError, ValueError]
    assert len(kinds) > 40
    for kind in kinds:
        failed = await failure_of(make(kind), sdk.APIStatusError)
        assert decide(failed.failure, 0.0).class_ in CLASSES
        assert SECRET not in str(failed)
        assert SECRET not in repr(failed)


async def test_statuses_keep_status_and_body() -> None:
    for sdk in (openai, anthropic):
        failed = await failure_of(make(sdk.RateLimitError), sdk.APIStatusError)
        assert (failed.failure.phase, failed.failure.status, failed.failure.body) == ("http", 429, SECRET)


@pytest.mark.parametrize(
    ("cause", "name"),
    [
        (socket.gaierror(-2, "no such host"), "dns_error"),
        (ssl.SSLCertVerificationError("self-signed"), "tls_error"),
        (httpx2.ConnectTimeout("slow"), "timeout"),
        (httpx2.ConnectError("refused"), "connect_error"),
        (httpx2.ProxyError("407"), "connect_error"),
        (httpx2.UnsupportedProtocol("ftp"), "connect_error"),
        (httpx2.RemoteProtocolError("disconnected"), "cut"),
        (ConnectionResetError("reset"), "cut"),
        (TypeError("ours"), ""),
    ],
)
def test_the_cause_that_tells_most_names_the_fault(cause: Exception, name: str) -> None:
    outer = openai.APIConnectionError(request=REQUEST)
    outer.__cause__ = cause
    assert name_transport_error(outer) == name
