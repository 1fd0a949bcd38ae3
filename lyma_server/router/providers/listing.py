"""The list of models that a provider offers, in any of the shapes that servers send."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lyma_server.router.providers.base import ListedModel

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import httpx2

    from lyma_server.protocol.base import Json
    from lyma_server.router.providers.exchange import Exchange

# OpenRouter, vLLM, Qwen, Anthropic, LM Studio, in this order.
WINDOW_FIELDS = ("context_length", "max_model_len", "context_window", "max_input_tokens", "max_context_length")


async def read_listing(
    exchange: Exchange, send: Callable[[], Awaitable[httpx2.Response]], status_errors: type[Exception]
) -> tuple[ListedModel, ...]:
    """Ask and read. Raises AttemptFailed, also where a 200 holds no list."""
    response = await exchange.open(send, status_errors)
    try:
        body = await exchange.read_body(response)
    finally:
        await response.aclose()
    rows = body.get("data", body.get("models")) if isinstance(body, dict) else body
    if not isinstance(rows, list):
        raise exchange.not_an_answer(body)
    return tuple(_model(row) for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str))


def _model(row: dict[str, Json]) -> ListedModel:
    meta = row.get("meta")
    windows = [row.get(name) for name in WINDOW_FIELDS]
    if isinstance(meta, dict):  # llama.cpp
        windows += [meta.get("n_ctx"), meta.get("n_ctx_train")]
    return ListedModel(row["id"], next((size for size in windows if isinstance(size, int) and size > 0), None))
