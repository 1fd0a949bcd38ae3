"""What the presets and the vendors' own variables add to a configuration, and the order where the user chose none."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from lyma_server.config.layers import DEFAULT, Layers, Source
from lyma_server.config.model import KeySettings
from lyma_server.config.presets import EMBEDDED, PRESETS, Preset

if TYPE_CHECKING:
    from collections.abc import Mapping

_FROM_PRESET: Final = ("api", "base_url", "model", "fast", "balanced", "strong")

_UNKNOWN_SERVER: Final = Preset(label="", api="openai")


def complete(layers: Layers, environ: Mapping[str, str]) -> None:
    """Fill in what is known of every provider that is spoken of or has a key, and choose an order if there is none."""
    configured = layers.providers()
    ordered = [name for _, names in layers.named() for name in names]
    usual = [name for name, preset in PRESETS.items() if _usual_keys(preset, environ)]
    for name in dict.fromkeys((*ordered, *configured, *usual)):
        _complete_provider(layers, name, environ)
    if not layers.values.get(("order",)):
        order = _default_order(layers, configured)
        layers.put(("order",), order or (EMBEDDED,), DEFAULT)
        if not order:
            _complete_provider(layers, EMBEDDED, environ)


def needs_key(name: str, base_url: str | None) -> bool:
    """Whether a provider turns away whoever has no key: a known one at its own address."""
    preset = PRESETS.get(name, _UNKNOWN_SERVER)
    return preset.key_variable is not None and base_url in {preset.base_url, preset.china_base_url}


def keys_in_environment(variable: str, environ: Mapping[str, str]) -> list[str]:
    """Return those of NAME, NAME_2, NAME_3 … that hold something, in this order."""
    numbered = (re.fullmatch(rf"{variable}_([1-9]\d*)", name) for name in environ)
    suffixed = sorted((int(match[1]), match[0]) for match in numbered if match)
    return [name for name in (variable, *(name for _, name in suffixed)) if environ.get(name, "").strip()]


def _usual_keys(preset: Preset, environ: Mapping[str, str]) -> list[str]:
    return keys_in_environment(preset.key_variable, environ) if preset.key_variable else []


def _complete_provider(layers: Layers, name: str, environ: Mapping[str, str]) -> None:
    preset = PRESETS.get(name, _UNKNOWN_SERVER)
    table = ("providers", name)
    source = Source("preset", name) if name in PRESETS else DEFAULT
    layers.fill(table, name, source)
    if preset.base_url_variable:
        address = environ.get(preset.base_url_variable) or None
        layers.fill((*table, "base_url"), address, Source("environment", preset.base_url_variable))
    for setting in _FROM_PRESET:
        layers.fill((*table, setting), getattr(preset, setting), source)
    variables = _usual_keys(preset, environ)
    if variables and not layers.provider(name, "keys"):
        keys = tuple(KeySettings(value=f"env:{variable}") for variable in variables)
        layers.put((*table, "keys"), keys, Source("environment", ", ".join(variables)))


def _default_order(layers: Layers, configured: list[str]) -> tuple[str, ...]:
    """Known providers that have a key, as the presets are ordered; then the user's own servers as they are written."""
    known = [name for name, preset in PRESETS.items() if preset.key_variable and name in layers.providers()]
    usable = [
        name
        for name in known
        if layers.provider(name, "keys") or not needs_key(name, layers.provider(name, "base_url"))
    ]
    own = [name for name in configured if name not in known and name != EMBEDDED]
    return (*usable, *own, *(name for name in configured if name == EMBEDDED))
