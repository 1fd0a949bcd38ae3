"""Settings for people and programs: every value as JSON would have it, with its source, and no key in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from lyma_server.config.keys import describe
from lyma_server.config.model import KeySettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lyma_server.config.layers import Source
    from lyma_server.config.load import Loaded


@attrs.frozen
class Shown:
    """A setting by its dotted name. `value` is JSON; keys are references or masked."""

    key: str
    value: Any
    source: Source


def shown_settings(loaded: Loaded) -> Iterator[Shown]:
    """Every setting in the order of the model, those of one provider together."""
    places: dict[str, int] = {}
    for key in loaded.sources:
        places.setdefault(_section(key), len(places))
    for key, source in sorted(loaded.sources.items(), key=lambda item: places[_section(item[0])]):
        value: Any = loaded.settings
        for step in key.split("."):
            value = value[step] if isinstance(value, dict) else getattr(value, step)
        yield Shown(key, _plain(value), source)


def _section(key: str) -> str:
    first, *rest = key.split(".")
    return f"{first}.{rest[0]}" if first == "providers" and rest else first


def _plain(value: Any) -> Any:
    if isinstance(value, KeySettings):
        return describe(value) if value.account is None else {"value": describe(value), "account": value.account}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if attrs.has(type(value)):
        return {field.name: _plain(getattr(value, field.name)) for field in attrs.fields(type(value))}
    return value
