"""Who may be asked for one request, and in which order. Pure, but for looking up where a folder really is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lyma_server.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lyma_server.config.model import FolderSettings
    from lyma_server.router.chat import ChatRequest
    from lyma_server.router.providers.base import Provider

SIZES = ("fast", "balanced", "strong")


def plan(
    providers: Sequence[Provider], folders: Iterable[FolderSettings], request: ChatRequest
) -> tuple[tuple[Provider, str], ...]:
    """The providers that `request` may be put to, each with the model to ask it for, first choice first.

    A pinned folder comes first: what is asked in it is sent to none but its providers. A pinned provider is the only one.
    Raises UsageError where a pin names a provider that is not there or not allowed.
    """
    pinned = _pinned_folder(folders, request.folder)
    allowed = list(providers) if pinned is None else _in_order(providers, pinned)
    if request.provider is not None:
        allowed = [_only(request.provider, providers, allowed, pinned)]
    elif request.prefer is not None:
        allowed.sort(key=lambda provider: provider.name != request.prefer)
    if request.among is not None:
        allowed = [provider for provider in allowed if provider.name in request.among]
    return _with_models(allowed, request.model)


def _only(
    name: str, providers: Sequence[Provider], allowed: Sequence[Provider], pinned: FolderSettings | None
) -> Provider:
    known = {provider.name: provider for provider in providers}
    if name not in known:
        names = ", ".join(known) or "none"
        raise UsageError(f'There is no provider "{name}"; those that are configured: {names}.')
    if known[name] not in allowed and pinned is not None:
        names = " and ".join(pinned.order)
        raise UsageError(f"The folder {pinned.path} is pinned to {names}, so nothing from it is sent to {name}.")
    return known[name]


def _in_order(providers: Sequence[Provider], pinned: FolderSettings) -> list[Provider]:
    known = {provider.name: provider for provider in providers}
    found = [known[name] for name in pinned.order if name in known]
    if not found:
        names = " and ".join(pinned.order) or "no provider"
        raise UsageError(f"The folder {pinned.path} is pinned to {names}, which is not configured: add a key for it.")
    return found


def _pinned_folder(folders: Iterable[FolderSettings], folder: str | None) -> FolderSettings | None:
    """The innermost pin that holds for `folder`, whatever links lead to either."""
    if folder is None:
        return None
    place = Path(folder).resolve()
    places = [(Path(pin.path).expanduser().resolve(), pin) for pin in folders]
    holding = [(root, pin) for root, pin in places if place.is_relative_to(root)]
    return max(holding, key=lambda found: len(found[0].parts), default=(None, None))[1]


def _with_models(providers: Sequence[Provider], model: str | None) -> tuple[tuple[Provider, str], ...]:
    """A size means each provider's own model of that size. A name means that model, at the providers that are configured
    with it, which come first; where none is, at the first one. The others answer with their own.
    """
    if model is None:
        return tuple((provider, provider.model) for provider in providers)
    if model in SIZES:
        return tuple((provider, _of_size(provider, model)) for provider in providers)
    knowing = [provider for provider in providers if model in _models_of(provider)] or list(providers[:1])
    others = [provider for provider in providers if provider not in knowing]
    return (*((provider, model) for provider in knowing), *((provider, provider.model) for provider in others))


def _of_size(provider: Provider, size: str) -> str:
    own: str | None = getattr(provider.settings, size)
    return own or provider.model


def _models_of(provider: Provider) -> set[str | None]:
    settings = provider.settings
    return {provider.model, settings.model, settings.fast, settings.balanced, settings.strong}
