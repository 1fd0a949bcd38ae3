"""The providers that Lyma knows by name, so that a key is all they need.

Addresses and variables are the vendors' own. Model names age fast: these are the ones that a public price map held in
November 2026, and hints only; `lyma models` lists what a provider offers today.
"""

from __future__ import annotations

from typing import Final, Literal

from attrs import frozen


@frozen(kw_only=True)
class Preset:
    """What is known of a provider. A null `base_url` is found out when it is started; a null `key_variable`: needs no key."""

    label: str
    api: Literal["openai", "anthropic", "embedded"]
    base_url: str | None = None
    china_base_url: str | None = None
    """The same service for accounts made in mainland China; keys do not work on both."""
    base_url_variable: str | None = None
    """The variable by which the vendor's own tools find another address."""
    key_variable: str | None = None
    keys_page: str | None = None
    """Where a person makes a key."""
    model: str = "auto"
    fast: str | None = None
    balanced: str | None = None
    strong: str | None = None


PRESETS: Final[dict[str, Preset]] = {
    "anthropic": Preset(
        label="Anthropic",
        api="anthropic",
        base_url="https://api.anthropic.com",
        base_url_variable="ANTHROPIC_BASE_URL",
        key_variable="ANTHROPIC_API_KEY",
        keys_page="https://console.anthropic.com/settings/keys",
        model="claude-sonnet-5-5",
        fast="claude-haiku-5-5",
        balanced="claude-sonnet-5-5",
        strong="claude-opus-5-5",
    ),
    "openai": Preset(
        label="OpenAI",
        api="openai",
        base_url="https://api.openai.com/v1",
        base_url_variable="OPENAI_BASE_URL",
        key_variable="OPENAI_API_KEY",
        keys_page="https://platform.openai.com/api-keys",
        model="gpt-6.1-sol",
        fast="gpt-6.1-terra",
        balanced="gpt-6.1-sol",
        strong="gpt-6.1-sol",
    ),
    "deepseek": Preset(
        label="DeepSeek",
        api="openai",
        base_url="https://api.deepseek.com",
        key_variable="DEEPSEEK_API_KEY",
        keys_page="https://platform.deepseek.com/api_keys",
        model="deepseek-flash",
        fast="deepseek-flash",
        balanced="deepseek-flash",
        strong="deepseek-v4-pro",
    ),
    "qwen": Preset(
        label="Qwen",
        api="openai",
        base_url="https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        china_base_url="https://dashscope.aliyuncs.com/compatible-mode/v1",
        key_variable="DASHSCOPE_API_KEY",
        keys_page="https://modelstudio.console.alibabacloud.com",
        model="qwen3.8-max",
        fast="qwen3.8-flash",
        balanced="qwen3.8-max",
        strong="qwen3.8-max",
    ),
    "kimi": Preset(
        label="Kimi",
        api="openai",
        base_url="https://api.moonshot.ai/v1",
        china_base_url="https://api.moonshot.cn/v1",
        key_variable="MOONSHOT_API_KEY",
        keys_page="https://platform.moonshot.ai/console/api-keys",
        model="kimi-k2.7-code",
        fast="kimi-k2.7-code",
        balanced="kimi-k2.7-code",
        strong="kimi-k3.1-pro",
    ),
    "ollama": Preset(label="Ollama", api="openai", base_url="http://127.0.0.1:11434/v1"),
    "llamacpp": Preset(label="llama.cpp", api="openai", base_url="http://127.0.0.1:8080/v1"),
    "vllm": Preset(label="vLLM", api="openai", base_url="http://127.0.0.1:8000/v1"),
    "lmstudio": Preset(label="LM Studio", api="openai", base_url="http://127.0.0.1:1234/v1"),
    "embedded": Preset(label="the embedded model", api="embedded", model="smollm2-135m-instruct"),
}
"""In the order in which they are tried where the user has chosen none."""

EMBEDDED: Final = "embedded"
"""What answers where nothing is configured."""
