"""From defaults, the file, the environment and flags to settings, each value with where it came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from attrs import field, frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lyma_server.config.model import Settings
    from lyma_server.config.paths import Home


@frozen
class Source:
    """Where a value came from. `where` is the file, the variable, the flag or the preset; empty for a default."""

    kind: Literal["default", "preset", "file", "environment", "flag"]
    where: str = ""


@frozen
class Loaded:
    """The settings, `sources` by dotted name (`providers.openai.model`), and what the user should be told once."""

    settings: Settings
    sources: Mapping[str, Source] = field(factory=dict)
    notices: tuple[str, ...] = ()


def load_settings(environ: Mapping[str, str], home: Home, flags: Mapping[str, str] | None = None) -> Loaded:
    """Find every setting: defaults < file < environment < flags (by dotted name, written as in the environment).

    Providers are completed from the presets and `order` is never empty. Raises ConfigError with file, line and key.
    """
    raise NotImplementedError(environ, home, flags)
