"""LiteLLM's Router with two deployments of a model, as its documentation sets one up; a failing one is not cooled."""

from __future__ import annotations

import logging
import os
from functools import partial
from typing import TYPE_CHECKING, Any

from bench.router.faults import FAULTS, PATIENCE_S, kind_of, path_of
from bench.router.sdk import ANSWER, MESSAGES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


async def stream(router: Any, model: str) -> None:
    more = {"stream_options": {"include_usage": True}}
    answer = await router.acompletion(model=model, messages=MESSAGES, stream=True, **more)
    text = [chunk.choices[0].delta.content async for chunk in answer if chunk.choices]
    assert text


async def whole(router: Any, model: str) -> None:
    answer = await router.acompletion(model=model, messages=MESSAGES)
    assert answer.choices[0].message.content


async def answer(router: Any) -> None:
    answer = await router.acompletion(model="m", messages=MESSAGES, stream=True)
    text = "".join([chunk.choices[0].delta.content or "" async for chunk in answer if chunk.choices])
    assert text == ANSWER


async def calls(port: int, refusing_port: int) -> dict[str, Callable[[], Awaitable[None]]]:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm

    litellm.suppress_debug_info = True
    logging.disable(logging.CRITICAL)
    litellm.telemetry = False

    def deployment(name: str, path: str, key: str = "sk-bench-0001", at: int = port) -> dict[str, Any]:
        url = f"http://127.0.0.1:{at}/{path}/v1"
        return {"model_name": name, "litellm_params": {"model": "openai/m", "api_base": url, "api_key": key}}

    router = litellm.Router(
        model_list=[
            *(deployment("short", "short", f"sk-bench-000{number}") for number in (1, 2)),
            *(deployment("long", "long", f"sk-bench-000{number}") for number in (1, 2)),
            deployment("limited", "short", "sk-bench-limited"),
            deployment("refused", "short", at=refusing_port),
        ],
        fallbacks=[{"limited": ["short"]}, {"refused": ["short"]}],
        num_retries=0,
        disable_cooldowns=True,
    )
    tolerant = {}
    for name, fault in FAULTS.items():
        bad = deployment("m", path_of(name), at=refusing_port if fault.refused else port)
        others = [deployment("m", "short", f"sk-bench-000{number}") for number in (2, 3)]
        patience = {"timeout": PATIENCE_S, "stream_timeout": PATIENCE_S}
        tolerant[kind_of(name)] = partial(answer, litellm.Router(model_list=[bad, *others], num_retries=2, **patience))
    names = ("short", "long", "limited", "refused")
    return {
        **{name: partial(stream, router, name) for name in names},
        "whole": partial(whole, router, "short"),
        **tolerant,
    }
