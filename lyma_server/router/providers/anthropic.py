"""Anthropic's message format. The only module that imports `anthropic`.

The SDK opens the connection and reads errors; its answer is taken raw, as openai's is, so that what hides in a 200 is
seen and a cut stream is a fact instead of a bare error of the layer below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lyma_server.config.addresses import http_base
from lyma_server.router.providers.anthropic_request import build_body
from lyma_server.router.providers.anthropic_stream import AnthropicAssembler

if TYPE_CHECKING:
    import anthropic
    import httpx2

    from lyma_server.protocol.base import Json
    from lyma_server.router.chat import Origin
    from lyma_server.router.providers.base import Call, Key, Provider
    from lyma_server.router.providers.sse import ServerEvent

BASE_URL = "https://api.anthropic.com"


class AnthropicWire:
    """Anthropic's format and SDK."""

    modules: tuple[str, ...] = ("anthropic",)
    chat_path = "/v1/messages"
    models_path = "/v1/models?limit=1000"

    def build_client(self, provider: Provider, key: Key, http: httpx2.AsyncClient) -> anthropic.AsyncAnthropic:
        """A client that knows nothing but what it is told. An explicit key, even an empty one, keeps the SDK from looking
        for credentials in the environment and in profiles on disk; no telemetry, no headers from the environment. The
        SDK adds the version to the path itself, so a base URL that ends with it is met half-way.
        """
        import anthropic

        client = anthropic.AsyncAnthropic(
            api_key="" if key.secret is None else key.secret.reveal(),
            base_url=(http_base(provider.base_url) or BASE_URL).rstrip("/").removesuffix("/v1"),
            timeout=http.timeout,
            max_retries=0,
            open_telemetry=False,
            http_client=http,
        )
        client._custom_headers = {}  # noqa: SLF001 - there is no public way to refuse ANTHROPIC_CUSTOM_HEADERS
        return client

    def keyless_headers(self) -> dict[str, Any]:
        """No header with a key."""
        import anthropic

        return {"Authorization": anthropic.Omit(), "X-Api-Key": anthropic.Omit()}

    def status_errors(self) -> type[Exception]:
        """The SDK's error for a status."""
        import anthropic

        return anthropic.APIStatusError

    def build_body(self, call: Call) -> dict[str, Json]:
        """The body of a streamed call."""
        return build_body(call)

    def assembler(self, origin: Origin) -> AnthropicAssembler:
        """What puts the answer together."""
        return AnthropicAssembler(origin)

    def is_last(self, event: ServerEvent) -> bool:
        """The event that ends every message."""
        return event.name == "message_stop"
