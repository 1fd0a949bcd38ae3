"""What is wrong with a configuration as a whole, though each of its values is right by itself."""

from __future__ import annotations

import urllib.parse
from typing import TYPE_CHECKING, Final

from attrs import evolve

from lyma_server.config.addresses import is_address
from lyma_server.config.complete import needs_key
from lyma_server.config.mistakes import Mistake, near_name
from lyma_server.config.presets import EMBEDDED, PRESETS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from lyma_server.config.layers import Layers
    from lyma_server.config.model import Settings

_ADDRESS: Final = "an address such as https://example.com/v1"


def mistakes_in(layers: Layers, already: Sequence[Mistake]) -> list[Mistake]:
    """Find what only shows when all layers are together. Providers that are `already` at fault are left alone."""
    at_fault = {mistake.path[1] for mistake in already if mistake.path[:1] == ("providers",) and len(mistake.path) > 1}
    sound = [name for name in layers.providers() if name not in at_fault]
    found = [*_unknown_names(layers), *(mistake for name in sound for mistake in _provider_mistakes(layers, name))]
    return [_with_giver(layers, mistake) for mistake in found]


def notices_of(settings: Settings, layers: Layers) -> tuple[str, ...]:
    """What a user should be told although it is no mistake."""
    return (*_stand_in_notices(settings, layers), *_left_out_notices(settings), *_plain_http_notices(settings))


def _unknown_names(layers: Layers) -> Iterator[Mistake]:
    known = dict.fromkeys((*layers.providers(), *PRESETS))
    for path, names in layers.named():
        for position, name in enumerate(names):
            if name not in known:
                hint = near_name(name, known)
                problem = f"names a provider that is neither known nor configured{hint}"
                yield Mistake((*path, position), problem, f"one of {', '.join(known)}")
            elif name in names[:position]:
                yield Mistake((*path, position), f"names {name} a second time", "each provider once")


def _provider_mistakes(layers: Layers, name: str) -> Iterator[Mistake]:
    path = ("providers", name, "base_url")
    address = layers.values.get(path)
    if address is not None and not is_address(address):
        yield Mistake(
            path,
            f"must be {_ADDRESS}, with http or https and no user name, or unix: and the path of a socket",
            _ADDRESS,
        )
    if address is None and name not in PRESETS and layers.provider(name, "api") != EMBEDDED:
        yield Mistake(path, f"is missing; {name} is not a known provider, so it must be {_ADDRESS}", _ADDRESS)


def _with_giver(layers: Layers, mistake: Mistake) -> Mistake:
    setting = tuple(step for step in mistake.path if isinstance(step, str))
    beside = (source for path, source in layers.sources.items() if path[:-1] == setting[:-1] and len(path) > 1)
    source = layers.sources.get(setting) or next(beside, None)
    return evolve(mistake, given_by=source.where) if source and source.kind in {"environment", "flag"} else mistake


def _stand_in_notices(settings: Settings, layers: Layers) -> Iterator[str]:
    chosen = (
        layers.sources["order",].kind != "default" or layers.sources["providers", settings.order[0]].kind != "preset"
    )
    if settings.order == (EMBEDDED,) and not chosen:
        yield "The small embedded model answers, since no provider is configured; run `lyma setup` to add one."


def _left_out_notices(settings: Settings) -> Iterator[str]:
    for name, provider in settings.providers.items():
        if name not in settings.order and not provider.keys and needs_key(name, provider.base_url):
            yield f"{name} is configured and has no key, so it is left out; run `lyma keys add {name}`."


def _plain_http_notices(settings: Settings) -> Iterable[str]:
    for name, provider in settings.providers.items():
        address = urllib.parse.urlsplit(provider.base_url or "")
        if address.scheme == "http" and not _is_near(address.hostname or ""):
            yield f"{name} is asked over plain http at {address.hostname}, so its keys and your code travel unencrypted."


def _is_near(host: str) -> bool:
    """Whether `host` is this machine or one in a private network, as far as its name tells."""
    import ipaddress

    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return host == "localhost" or "." not in host or host.endswith((".localhost", ".local", ".lan", ".internal"))
