"""Costs equal a ledger made by hand, and the day's cap holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lyma_server.errors import ProviderError, StreamInterrupted
from lyma_server.protocol.events import Usage
from lyma_server.router.chat import Remark
from lyma_server.router.database import Database
from lyma_server.router.prices import ModelFacts, Tier
from lyma_server.router.router import Router
from lyma_server.router.state import State
from tests.routing import ask, make_keys, make_provider, make_settings
from tests.stub_provider import StubProvider, cut, fail, say

if TYPE_CHECKING:
    from pathlib import Path

    from lyma_server.router.providers.base import Provider
    from tests.routing import Outcome

PRICE = ModelFacts(100_000, Tier(3_000_000, 300_000, 15_000_000))


@pytest.fixture(autouse=True)
def _priced(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stub is on this machine and so would be free: "paid" has a price, "unknown" has none."""

    def price_of(vendor: str, model: str, base_url: str | None = None) -> Any:
        from lyma_server.router.prices import FREE

        return {"paid": PRICE, "unknown": None}.get(vendor, FREE)

    monkeypatch.setattr("lyma_server.router.spending.price_of", price_of)


def router_of(*providers: Provider, path: Path | None = None, **settings: Any) -> Router:
    return Router(providers, make_settings(**settings), State(Database(path)))


async def test_the_day_equals_a_ledger_made_by_hand(tmp_path: Path) -> None:
    replies = [fail(429), say("a", input_tokens=1000, output_tokens=10), say("b", input_tokens=7, output_tokens=3)]
    with StubProvider(replies) as stub:
        router = router_of(make_provider(stub, name="paid", keys=make_keys(2)), path=tmp_path / "state.db")
        first, second = await ask(router), await ask(router)
        status = router.status()[0]
        await router.close()
    assert first.completed.usage == Usage(input_tokens=1000, output_tokens=10, cost_micros=3150)
    assert second.completed.usage == Usage(input_tokens=7, output_tokens=3, cost_micros=66)
    assert (status.tokens_today, status.cost_micros_today) == (1020, 3216)


async def test_an_unknown_price_is_unknown_and_not_a_sum_that_looks_whole() -> None:
    with StubProvider([say("a")]) as stub:
        router = router_of(make_provider(stub, name="unknown"))
        outcome = await ask(router)
        status = router.status()[0]
        await router.close()
    assert outcome.completed.usage.cost_micros is None
    assert status.cost_micros_today is None


async def test_an_interrupted_answer_is_estimated(tmp_path: Path) -> None:
    with StubProvider([cut("eight ch", "aracters")]) as stub:
        router = router_of(make_provider(stub, name="paid"), path=tmp_path / "state.db")
        outcome = await ask(router)
        status = router.status()[0]
        await router.close()
    assert isinstance(outcome.error, StreamInterrupted)
    assert status.tokens_today == 4 + 5  # 16 characters out; "question" and "Be brief." in


async def test_over_the_cap_only_what_costs_nothing_is_asked() -> None:
    with StubProvider([say("paid", input_tokens=1000)]) as paid, StubProvider([say("free")]) as free:
        both = (make_provider(paid, name="paid"), make_provider(free, name="local"))
        router = router_of(*both, daily_cap_micros=3000)
        answers = [(await ask(router)).text for _ in range(3)]
        refused = await ask(router, provider="paid")
        await router.close()
    assert answers == ["paid", "free", "free"]
    assert isinstance(refused.error, ProviderError)
    assert "0.00 USD" in refused.error.message
    assert len(paid.requests) == 1


async def test_who_costs_more_than_the_first_choice_says_so_once_a_session() -> None:
    with StubProvider([fail(429)]) as limited, StubProvider([say("ok")]) as other:
        local, paid, unknown = (make_provider(other, name=name) for name in ("local", "paid", "unknown"))
        first = make_provider(limited, name="cheap")
        dearer = Router((first, paid), make_settings())
        same = Router((first, local), make_settings())
        uncertain = Router((first, unknown), make_settings())
        told = [remarks(await ask(dearer, session=session)) for session in ("s", "s", "t")]
        others = [remarks(await ask(router)) for router in (same, uncertain)]
        for router in (dearer, same, uncertain):
            await router.close()
    sentence = (
        "paid m answers in place of cheap m and costs more: $3 in and $15 out for a million tokens, against nothing."
    )
    assert told == [[sentence], [], [sentence]]
    assert others == [[], ["unknown m answers in place of cheap m; what it costs is not known."]]


async def test_trouble_with_the_state_is_told_to_the_person(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    path.write_bytes(b"not a database at all" * 100)
    with StubProvider([say("ok")]) as stub:
        router = router_of(make_provider(stub, name="free"), path=path)
        first, second = await ask(router), await ask(router)
        await router.close()
    assert first.text == "ok"
    (notice,) = remarks(first) + remarks(second)
    assert "was damaged" in notice
    assert router.take_notices() == []


def remarks(outcome: Outcome) -> list[str]:
    return [event.text for event in outcome.events if isinstance(event, Remark)]
