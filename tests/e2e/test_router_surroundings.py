"""What the environment may and may not do to a call: proxies and certificate authorities yes, keys and headers no."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from lyma_server.errors import ConfigError
from lyma_server.router.providers.base import Key, Provider
from lyma_server.router.router import Router
from tests.private_network import AUTHORITY, Tunnel, server_tls
from tests.routing import FORMATS, ask, make_keys, make_provider, make_settings
from tests.stub_provider import StubProvider, say

if TYPE_CHECKING:
    from pathlib import Path

PLANTED = {
    "OPENAI_API_KEY": "sk-planted-0123456789abcdef",
    "OPENAI_ADMIN_KEY": "sk-planted-0123456789abcdef",
    "OPENAI_ORG_ID": "org-planted",
    "OPENAI_PROJECT_ID": "planted",
    "OPENAI_BASE_URL": "http://planted.invalid",
    "OPENAI_CUSTOM_HEADERS": "Authorization: Bearer planted\nX-Planted: planted",
    "ANTHROPIC_API_KEY": "sk-planted-0123456789abcdef",
    "ANTHROPIC_AUTH_TOKEN": "planted-token",
    "ANTHROPIC_BASE_URL": "http://planted.invalid",
    "ANTHROPIC_CUSTOM_HEADERS": "Authorization: Bearer planted\nX-Planted: planted",
    "ANTHROPIC_PROFILE": "planted",
}


@pytest.mark.parametrize("api", FORMATS)
@pytest.mark.parametrize("keys", [make_keys(1), (Key(),)], ids=["key", "no key"])
async def test_nothing_of_the_environment_is_sent(
    api: str, keys: tuple[Key, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in PLANTED.items():
        monkeypatch.setenv(name, value)
    with StubProvider([say("a")]) as stub:
        router = Router((make_provider(stub, api, keys=keys),), make_settings())
        assert (await ask(router)).text == "a"
        await router.models()
        await router.close()
    for request in (*stub.requests, *stub.listings):
        assert "planted" not in str(request.headers)
        assert request.key == ("" if keys[0].secret is None else keys[0].secret.reveal())


async def test_a_proxy_of_the_environment_is_used_but_not_for_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with StubProvider([say("through the proxy")]) as proxy, StubProvider([say("direct")]) as direct:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("http_proxy", proxy.url)
        far, near = make_provider("http://far.example/v1", name="far"), make_provider(direct, name="near")
        router = Router((far, near), make_settings())
        outcome, local = await ask(router), await ask(router, provider="near")
        await router.close()
    assert outcome.text == "through the proxy"
    assert proxy.requests[0].path == "http://far.example/v1/chat/completions"
    assert local.text == "direct"
    assert len(proxy.requests) == 1


@pytest.mark.parametrize("api", FORMATS)
@pytest.mark.parametrize("trusted", [True, False])
async def test_a_private_authority_is_trusted_when_the_environment_names_it(
    api: str, trusted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", AUTHORITY)
    with StubProvider([say("safe")], tls=server_tls()) as stub:
        router = Router((make_provider(stub, api, keys=make_keys(1)),), make_settings())
        outcome = await ask(router)
        await router.close()
    assert outcome.route == ([("ok", "done")] if trusted else [("tls_error", "fail")])
    assert len(stub.requests) == trusted
    assert trusted or f"at {make_provider(stub, api).base_url}" in str(outcome.error)
    assert trusted or "SSL_CERT_FILE" in str(outcome.error)


async def test_a_certificate_of_another_host_is_refused_and_never_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", AUTHORITY)
    with StubProvider([say("not safe")], host="127.0.0.2", tls=server_tls()) as stub:
        router = Router((make_provider(stub, keys=make_keys(1)),), make_settings())
        outcomes = [await ask(router) for _ in range(3)]
        await router.close()
    assert [outcome.route for outcome in outcomes] == [[("tls_error", "fail")]] * 3
    assert "127.0.0.2" in str(outcomes[0].error)
    assert stub.requests == []


@pytest.mark.parametrize("api", FORMATS)
async def test_https_goes_through_a_tunnel_but_for_hosts_that_need_none(
    api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", AUTHORITY)
    monkeypatch.setenv("NO_PROXY", "127.0.0.3")
    with (
        StubProvider([say("far")], tls=server_tls()) as stub,
        StubProvider([say("near")], host="127.0.0.3") as near,
        Tunnel(stub.port) as tunnel,
    ):
        for name in ("HTTPS_PROXY", "HTTP_PROXY"):
            monkeypatch.setenv(name, tunnel.url)
        providers = (make_provider("https://far.example", api, name="far", keys=make_keys(1)), make_provider(near))
        router = Router(providers, make_settings())
        texts = [(await ask(router, provider=name)).text for name in ("far", "one")]
        await router.close()
    assert texts == ["far", "near"]
    assert tunnel.hosts == ["far.example:443"]
    assert stub.requests[0].headers["host"] == "far.example"


async def test_a_redirect_does_not_carry_the_key_elsewhere() -> None:
    with StubProvider([say("stolen")]) as thief:
        from tests.stub_provider import Reply

        away = Reply(status=307, body="", headers={"location": f"{thief.openai_url}/chat/completions"})
        with StubProvider([away]) as stub:
            router = Router((make_provider(stub, keys=make_keys(1)),), make_settings())
            outcome = await ask(router)
            await router.close()
    assert outcome.error is not None
    assert thief.requests == []


async def test_no_cookie_is_kept() -> None:
    """Keys and providers share one client: what a server tells the one is not for the next."""
    with StubProvider([say("a", headers={"set-cookie": "name=value"})]) as stub:
        router = Router((make_provider(stub),), make_settings())
        for _ in range(2):
            assert (await ask(router)).text == "a"
        await router.close()
    assert ["cookie" in request.headers for request in stub.requests] == [False, False]


def test_a_provider_that_is_nowhere_is_refused_before_its_key_goes_to_somebody_else() -> None:
    with pytest.raises(ConfigError, match="local has no base_url"):
        Router((Provider("local", "openai", None, "m"),), make_settings())


class ServerOnSocket:
    """Stands where the model on board is: relays a Unix socket to a stub, and can move to another socket."""

    def __init__(self, folder: Path, port: int) -> None:
        self._folder, self._port = folder, port
        self._server: asyncio.Server | None = None
        self.starts = 0

    async def socket(self) -> str:
        if self._server is None:
            self.starts += 1
            self._server = await asyncio.start_unix_server(self._relay, self._path)
        return self._path

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    @property
    def _path(self) -> str:
        return str(self._folder / f"{self.starts}.sock")

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        await asyncio.gather(self._pump(reader, back), self._pump(there, writer))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while block := await reader.read(1 << 16):
                writer.write(block)
        except ConnectionError:
            pass
        finally:
            writer.close()


async def test_the_model_on_board_is_reached_by_its_socket_and_found_again_when_it_moves(tmp_path: Path) -> None:
    with StubProvider([say("on board")]) as stub:
        launcher = ServerOnSocket(tmp_path, stub.port)
        router = Router((Provider("embedded", "embedded", None, "auto"),), make_settings(), launcher=launcher)
        first = await ask(router)
        await launcher.stop()
        again = await ask(router)
        await router.close()
    assert (first.text, again.text) == ("on board", "on board")
    assert launcher.starts == 2
    assert stub.requests[0].headers["host"] == "embedded"
