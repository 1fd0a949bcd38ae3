"""Probing tells what is wrong with which provider and key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lyma_server.router.providers.base import Key, Provider
from lyma_server.router.router import Router
from tests.routing import FORMATS, make_keys, make_provider, make_settings
from tests.stub_provider import Reply, StubProvider, fail, html, refusing_url, say

if TYPE_CHECKING:
    from lyma_server.router.listings import Probe


async def probe(*providers: Provider) -> tuple[Probe, ...]:
    router = Router(providers, make_settings())
    try:
        return await router.probe(patience_s=5)
    finally:
        await router.close()


@pytest.mark.parametrize("api", FORMATS)
@pytest.mark.parametrize(
    ("reply", "class_"),
    [
        (fail(401), "auth_invalid"),
        (fail(402), "quota_exhausted"),
        (html(404), "wrong_url"),
        (html(200), "protocol_error"),
        (fail(403, {"error": {"code": "unsupported_country_region_territory"}}), "region_denied"),
    ],
)
async def test_faults_are_named(api: str, reply: Reply, class_: str) -> None:
    with StubProvider([], listing=reply) as stub:
        (found,) = await probe(make_provider(stub, api, keys=make_keys(1)))
    assert (found.class_, found.key) == (class_, "…jk-1")
    assert found.words
    assert found.where is not None


async def test_no_network_and_each_key_on_its_own() -> None:
    with StubProvider([say("a")], models=("gpt-big", "gpt-small")) as stub:
        down = make_provider(refusing_url(), name="down")
        found = await probe(make_provider(stub, keys=make_keys(2), model="gpt-bigg"), down)
    assert [(one.provider, one.class_) for one in found] == [
        ("one", "ok"), ("one", "ok"), ("down", "connect_error"),
    ]  # fmt: skip
    assert (found[0].model_known, found[0].near[0]) == (False, "gpt-big")


async def test_a_key_of_the_other_region_is_thought_of() -> None:
    from attrs import evolve

    from lyma_server.router.listings import advice_for

    kimi = Provider("kimi", "openai", "https://api.moonshot.ai/v1", "m", (Key(),))
    assert "keys for https://api.moonshot.cn/v1 do not work at https://api.moonshot.ai/v1" in advice_for(
        "auth_invalid", kimi
    )
    other = evolve(kimi, base_url="https://api.moonshot.cn/v1")
    assert "keys for https://api.moonshot.ai/v1 do not" in advice_for("auth_invalid", other)
