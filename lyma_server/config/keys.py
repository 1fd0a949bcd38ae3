"""From `env:` and `cmd:` references to keys. What cannot be resolved is a problem of that key, not of the start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attrs import frozen

from lyma_server.config.complete import keys_in_environment, needs_key
from lyma_server.config.presets import PRESETS
from lyma_server.errors import LymaError
from lyma_server.secret import Secret

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from lyma_server.config.model import KeySettings, Settings

_VARIABLE: Final = "env:"
_COMMAND: Final = "cmd:"


@frozen
class ResolvedKey:
    """A key, or else a clause that says why there is none. `source` says where it stands, and gives nothing away."""

    secret: Secret | None
    account: str | None
    source: str
    problem: str | None = None

    @property
    def complaint(self) -> str:
        """What is wrong with this key, and which one it is."""
        return f"{self.source}: {self.problem}" if self.source else self.problem or ""


def resolve_keys(
    settings: Settings,
    environ: Mapping[str, str],
    run_command: Callable[[str], str],
    providers: Iterable[str] | None = None,
) -> dict[str, tuple[ResolvedKey, ...]]:
    """Resolve the keys of `providers` (all by default). No keys at all: the provider needs none.

    `run_command` takes the text after `cmd:` and returns its output, or raises LymaError; each command runs once.
    """
    resolver = _Resolver(environ, run_command, {})
    names = settings.providers if providers is None else providers
    return {name: tuple(_keys_of(name, settings, resolver)) for name in names}


def secrets_at_hand(settings: Settings, environ: Mapping[str, str]) -> Iterator[Secret]:
    """Every key of every provider that no command must be run for, also of those that are not in the order."""
    resolver = _Resolver(environ, lambda _command: "", {})
    for provider in settings.providers.values():
        for key in provider.keys:
            yield from (Secret(value) for value, _problem in resolver.values(key) if value)


def variables_of_keys(settings: Settings, environ: Mapping[str, str]) -> frozenset[str]:
    """The variables that hold a key, by their names: those that the settings name, and the usual ones of every provider."""
    usual = (preset.key_variable for preset in PRESETS.values() if preset.key_variable)
    texts = (key.value.reveal() for provider in settings.providers.values() for key in provider.keys)
    named = {text.removeprefix(_VARIABLE) for text in texts if text.startswith(_VARIABLE)}
    return frozenset(named.union(*(keys_in_environment(variable, environ) for variable in usual)))


def describe(key: KeySettings) -> str:
    """Name a key without giving it away: its variable, the first word of its command, or its masked value."""
    text = key.value.reveal()
    if text.startswith(_COMMAND):
        program, *arguments = text.removeprefix(_COMMAND).split(maxsplit=1) or [""]
        return f"{_COMMAND}{program}{' …' if arguments else ''}"
    return text if text.startswith(_VARIABLE) else key.value.masked


def _keys_of(name: str, settings: Settings, resolver: _Resolver) -> Iterator[ResolvedKey]:
    provider = settings.providers[name]
    for key in provider.keys:
        for value, problem in resolver.values(key):
            fault = problem or _fault(value)
            yield ResolvedKey(None if fault else Secret(value), key.account, describe(key), fault or None)
    if not provider.keys and needs_key(name, provider.base_url):
        variable = PRESETS[name].key_variable
        yield ResolvedKey(None, None, "", f"no key is configured, and {variable} is not set")


@frozen
class _Resolver:
    environ: Mapping[str, str]
    run_command: Callable[[str], str]
    outputs: dict[str, tuple[str, str]]
    """By command: its output and its problem, one of them empty."""

    def values(self, key: KeySettings) -> list[tuple[str, str]]:
        """Return what the key stands for, each with its problem if it has one. A variable may hold several keys."""
        text = key.value.reveal()
        if text.startswith(_VARIABLE):
            return self._from_variable(text.removeprefix(_VARIABLE))
        if text.startswith(_COMMAND):
            return [self._from_command(text.removeprefix(_COMMAND).strip())]
        return [(text.strip(), "")]

    def _from_variable(self, name: str) -> list[tuple[str, str]]:
        values = [part.strip() for part in self.environ.get(name, "").split(",") if part.strip()]
        return [(value, "") for value in values] or [("", "the variable is not set")]

    def _from_command(self, command: str) -> tuple[str, str]:
        if command not in self.outputs:
            try:
                self.outputs[command] = self.run_command(command).strip(), ""
            except LymaError as error:
                self.outputs[command] = "", f"its command failed ({error.message.rstrip('.')})"
        return self.outputs[command]


def _fault(value: str) -> str:
    """Say why a value cannot be a key, which travels in a header, or nothing."""
    if not value:
        return "it is empty"
    if len(value.splitlines()) > 1:
        return "it has more than one line"
    if not (value.isascii() and value.isprintable()) or " " in value:
        return "it holds spaces or characters that no key has"
    return ""
