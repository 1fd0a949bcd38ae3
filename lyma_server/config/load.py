"""From defaults, the file, the environment and flags to settings, each value with where it came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from lyma_server.config import environment, file, shape
from lyma_server.config.checks import mistakes_in, notices_of
from lyma_server.config.complete import complete
from lyma_server.config.layers import DEFAULT, Layers, Source
from lyma_server.config.mistakes import Mistake, error_of
from lyma_server.config.model import Settings
from lyma_server.config.presets import PRESETS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lyma_server.config.layers import SettingPath
    from lyma_server.config.paths import Home

__all__ = ["Loaded", "Source", "load_settings", "read_layers"]


@attrs.frozen
class Loaded:
    """The settings, `sources` by dotted name (`providers.openai.model`), and what the user should be told once."""

    settings: Settings
    sources: Mapping[str, Source] = attrs.field(factory=dict)
    notices: tuple[str, ...] = ()


def load_settings(environ: Mapping[str, str], home: Home, flags: Mapping[str, str] | None = None) -> Loaded:
    """Find every setting: defaults < file < environment < flags (by dotted name, written as in a variable).

    Providers are completed from the presets and `order` is never empty. Raises ConfigError with file, line and key.
    """
    text = file.read_text(home.config) or ""
    mistakes: list[Mistake] = []
    document = file.parse(home.config, text) if text else {}
    layers = read_layers(document, str(home.config), mistakes, environ, flags or {})
    if mistakes:
        raise error_of(mistakes, str(home.config), text)
    complete(layers, environ)
    settings: Settings = build(Settings, layers.values)
    return Loaded(settings, _sources(layers, settings), notices_of(settings, layers))


def read_layers(
    document: dict[str, Any],
    file_name: str,
    mistakes: list[Mistake],
    environ: Mapping[str, str],
    flags: Mapping[str, str],
) -> Layers:
    """Put the file, the variables and the flags over each other, and add to `mistakes` what is wrong with them."""
    layers = Layers()
    for path, value in file.read_values(document, mistakes).items():
        layers.put(path, value, Source("file", file_name))
    variables = environment.read_variables(environ, (*layers.providers(), *PRESETS), mistakes)
    for path, value in variables.values.items():
        layers.put(path, value, Source("environment", variables.given_by[path]))
    for path, value in environment.read_flags(flags, mistakes).values.items():
        layers.put(path, value, Source("flag", "the command line"))
    mistakes += mistakes_in(layers, mistakes)
    return layers


def build(cls: type, values: Mapping[SettingPath, Any], path: SettingPath = ()) -> Any:
    """Make a `cls` of the values at and below `path`; what is not there keeps its default."""
    arguments: dict[str, Any] = {}
    for field, (name, part) in zip(attrs.fields(cls), shape.parts(cls).items(), strict=True):
        here = (*path, name)
        if isinstance(part, shape.Leaf):
            if here in values:
                arguments[field.name] = values[here]
        elif part.named:
            names = dict.fromkeys(other[len(here)] for other in values if other[:-1][: len(here)] == here)
            arguments[field.name] = {each: build(part.cls, values, (*here, each)) for each in names}
        else:
            arguments[field.name] = build(part.cls, values, here)
    return cls(**arguments)


def _sources(layers: Layers, settings: Settings) -> dict[str, Source]:
    """Give every setting a source, those of each provider included, in the order of the model."""
    sources = {}
    for leaf in shape.leaves():
        names = settings.providers if shape.ANY_NAME in leaf.path else ("",)
        for name in names:
            path = tuple(name if step == shape.ANY_NAME else step for step in leaf.path)
            sources[".".join(path)] = layers.sources.get(path, DEFAULT)
    return sources
