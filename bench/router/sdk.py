"""The bare openai SDK: what a call costs where nobody routes it. A failover is written out, as one would by hand."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import openai

MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "question"}]


ANSWER = "word0 "


async def stream(client: openai.AsyncOpenAI) -> None:
    more: dict[str, Any] = {"stream_options": {"include_usage": True}}
    async with await client.chat.completions.create(model="m", messages=MESSAGES, stream=True, **more) as answer:  # type: ignore[call-overload]
        text = [chunk.choices[0].delta.content async for chunk in answer if chunk.choices]
    assert text


async def whole(client: openai.AsyncOpenAI) -> None:
    answer = await client.chat.completions.create(model="m", messages=MESSAGES)  # type: ignore[arg-type]
    assert answer.choices[0].message.content


async def fail_over(bad: openai.AsyncOpenAI, good: openai.AsyncOpenAI, error: type[Exception]) -> None:
    try:
        await stream(bad)
    except error:
        await stream(good)


async def calls(port: int, refusing_port: int) -> dict[str, Callable[[], Awaitable[None]]]:
    import httpx2
    import openai

    http = httpx2.AsyncClient()

    def client(path: str, key: str = "sk-bench-0001", at: int = port) -> openai.AsyncOpenAI:
        url = f"http://127.0.0.1:{at}/{path}/v1"
        return openai.AsyncOpenAI(api_key=key, base_url=url, max_retries=0, http_client=http)

    short, long = client("short"), client("long")
    limited, refused = client("short", "sk-bench-limited"), client("short", at=refusing_port)
    return {
        "short": partial(stream, short),
        "long": partial(stream, long),
        "whole": partial(whole, short),
        "limited": partial(fail_over, limited, short, openai.RateLimitError),
        "refused": partial(fail_over, refused, short, openai.APIConnectionError),
    }
