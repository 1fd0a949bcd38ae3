"""Builds the core from the settings. Nothing heavy is imported for it: no SDK, no HTTP client, no editor's protocol."""

from __future__ import annotations

import functools
import os
import signal
import sys
import threading
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import field, frozen

from lyma_server.agent.agent import Agent
from lyma_server.agent.session import SessionStore
from lyma_server.agent.texts import map_texts
from lyma_server.config.keys import resolve_keys, secrets_at_hand, variables_of_keys
from lyma_server.config.load import load_settings
from lyma_server.config.paths import Home
from lyma_server.config.presets import EMBEDDED
from lyma_server.errors import ConfigError, MaskUnavailable, UsageError
from lyma_server.executor.sessions import CommandSessions
from lyma_server.protocol.base import evolve
from lyma_server.protocol.messages import KeyStatus, ModelsFailure, ProviderStatus
from lyma_server.router.database import Database
from lyma_server.router.providers.base import Key, Provider
from lyma_server.router.providers.embedded_process import EmbeddedServer
from lyma_server.router.router import Router
from lyma_server.router.state import State
from lyma_server.secret import Redactor

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from lyma_server.agent.direct import RunTurn
    from lyma_server.agent.ports import Listener, Person, Workspace
    from lyma_server.agent.runs import Wanted
    from lyma_server.agent.subagents import Subagents
    from lyma_server.agent.turn import Turn
    from lyma_server.config.keys import ResolvedKey
    from lyma_server.config.load import Loaded
    from lyma_server.config.model import ProviderSettings, Settings
    from lyma_server.executor.run import Commands
    from lyma_server.factory.external import External
    from lyma_server.factory.factory import Factory
    from lyma_server.factory.run import Runs
    from lyma_server.protocol.messages import AskParams, ModelsResult
    from lyma_server.router.listings import Probe
    from lyma_server.secret import Secret

NO_SUCH_PROGRAM = 127
"""What a shell ends with then."""
KEY_COMMAND_S = 60
"""A password manager may have to ask its owner first."""


@frozen
class Core:
    """All that a face needs. `keys` holds, by provider, also those keys that could not be resolved."""

    loaded: Loaded
    home: Home
    keys: Mapping[str, tuple[ResolvedKey, ...]]
    router: Router
    agent: Agent
    redactor: Redactor
    commands: CommandSessions | None = None
    _before_closing: list[Callable[[], Awaitable[None]]] = field(factory=list, init=False)

    def start(self, params: AskParams, workspace: Workspace, person: Person, listener: Listener) -> Turn:
        """Start a turn on the running event loop.

        Raises UsageError for a provider that is not configured, ConfigError where no provider has a key, and what the
        agent raises before anything begins.
        """
        for name in (params.provider, params.prefer):
            if name is not None:
                self._check_named(name)
        if not any(usable(self.keys[name]) for name in self.loaded.settings.order):
            raise ConfigError(f"No provider can be asked: {self._complaints()}; run `lyma setup` to store a key.")
        return self.agent.start(params, workspace, person, listener)

    @cached_property
    def factory(self) -> Factory:
        """Agents: compiled, listed and approved. Imported when it is first asked for."""
        from lyma_server.factory.factory import Factory

        return Factory(self.home, self.loaded.settings.factory.ceiling)

    @cached_property
    def runs(self) -> Runs:
        """What runs compiled agents. Imported when it is first asked for."""
        from lyma_server.factory.run import Runs
        from lyma_server.factory.sandbox import Sandbox
        from lyma_server.factory.tree import Ground

        keep_days = self.loaded.settings.sessions.keep_days
        prove_mask = self.commands.prove_mask if self.commands is not None else _no_mask
        runs = Runs(Ground(self.factory, self.router, Sandbox(), self.home, self.redactor, prove_mask, keep_days))
        self._before_closing.append(runs.close)
        return runs

    @cached_property
    def subagents(self) -> Subagents:
        """What drafts, compiles and runs agents."""
        from lyma_server.agent.subagents import Subagents

        return Subagents(self.factory, lambda: self.runs, self.external)

    @property
    def external(self) -> External | None:
        """The external factory, where the settings ask for one."""
        settings = self.loaded.settings.factory
        if settings.mode != "external":
            return None
        from lyma_server.factory.external import External

        return External(self.factory, settings, self.home, lambda: self.runs)

    def start_run(self, wanted: Wanted, workspace: Workspace, person: Person, listener: Listener) -> RunTurn:
        """Run a compiled agent as a turn of its own. Raises UsageError before anything begins."""
        return self.agent.start_run(wanted, workspace, person, listener)

    @property
    def sandbox(self) -> str:
        """What bounds compiled agents here; whether it holds is proven before the first one runs."""
        from lyma_server.isolation.probe import find_bwraps

        return "bwrap" if sys.platform == "linux" and find_bwraps() else "none"

    def provider_status(self) -> tuple[ProviderStatus, ...]:
        """How each provider in the order stands, those without a usable key included."""
        known = {status.name: status for status in self.router.status()}
        return tuple(self._with_missing(known.get(name) or self._unasked(name)) for name in self.loaded.settings.order)

    async def models(self, provider: str | None = None) -> ModelsResult:
        """What the providers list, or one of them, without secrets: a list may hold anything.

        Raises UsageError for a provider that is not configured, and ConfigError for one that has no key.
        """
        if provider is not None:
            self._check_named(provider)
        result = map_texts(await self.router.models(provider), self.redactor.redact)
        keyless = [name for name in self.loaded.settings.order if provider is None and not usable(self.keys[name])]
        failures = tuple(ModelsFailure(provider=name, message=f"{self._complaint(name)}.") for name in keyless)
        return evolve(result, failures=(*result.failures, *failures))

    async def probe(self) -> tuple[Probe, ...]:
        """What came of asking each provider with each key, without secrets."""
        return map_texts(await self.router.probe(), self.redactor.redact)

    def _unasked(self, name: str) -> ProviderStatus:
        settings = self.loaded.settings.providers[name]
        return ProviderStatus(name=name, api=settings.api, model=settings.model or "auto", base_url=settings.base_url)

    def _with_missing(self, status: ProviderStatus) -> ProviderStatus:
        problems = [key for key in self.keys[status.name] if key.problem]
        missing = (KeyStatus(key=key.source, state="missing", reason=key.problem) for key in problems)
        return evolve(status, keys=(*status.keys, *missing))

    async def close(self) -> None:
        """End all agents, commands and connections."""
        try:
            for end in self._before_closing:
                await end()
            if self.commands is not None:
                await self.commands.close()
        finally:
            await self.router.close()

    def _check_named(self, name: str) -> None:
        order = self.loaded.settings.order
        if name not in order:
            known = name in self.loaded.settings.providers
            adding = f"; `lyma config set order {','.join((*order, name))}` adds it" if known else ""
            raise UsageError(f"There is no provider {name[:40]!r} in your order ({', '.join(order)}){adding}.")
        if not usable(self.keys[name]):
            raise ConfigError(f"{self._complaint(name)}; run `lyma keys add {name}`.")

    def _complaints(self) -> str:
        return "; ".join(map(self._complaint, self.loaded.settings.order)) or "none is configured"

    def _complaint(self, name: str) -> str:
        complaints = dict.fromkeys(key.complaint for key in self.keys[name] if key.problem)
        return f"{name} has no key that can be used ({'; '.join(complaints)})"


def build_core(environ: Mapping[str, str], flags: Mapping[str, str] | None = None) -> Core:
    """Build the core for one process. `flags` are settings by dotted name.

    Runs the commands of `cmd:` keys, one after another. Raises ConfigError for a file or a value that cannot be used; a
    key that cannot be resolved is no error here.
    """
    home = Home.find(environ)
    home.ensure()
    loaded = load_settings(environ, home, flags)
    settings = loaded.settings
    redactor = Redactor(secrets_at_hand(settings, environ))
    own = variables_of_keys(settings, environ)
    bare = {name: text for name, text in environ.items() if name not in own and not redactor.finds(text)}
    run_command = functools.partial(run_key_command, environ=bare)
    keys = resolve_keys(settings, environ, run_command, settings.order)
    for secret in _resolved_secrets(keys):
        redactor.add(secret)
    state = State(Database(home.state_db))
    router = Router(_providers(settings, keys), settings, state, launcher=_embedded(settings))
    sessions = SessionStore(home.sessions, settings.sessions.keep_days)
    commands = command_sessions(settings, environ, home, redactor, own)
    agent = Agent(router, sessions, settings.agent, redactor, home.root, commands)
    core = Core(loaded, home, keys, router, agent, redactor, commands)
    agent.subagents = lambda: core.subagents
    return core


def command_sessions(
    settings: Settings, environ: Mapping[str, str], home: Home, redactor: Redactor, key_variables: frozenset[str]
) -> CommandSessions | None:
    """What runs the commands of sessions; null where no system supports it (only Linux does)."""
    if sys.platform != "linux":
        return None
    executor = settings.executor
    user_home = _user_home(environ)

    def make(root: Path) -> Commands:
        from lyma_server.executor.environment import command_environment
        from lyma_server.executor.ground import Ground
        from lyma_server.executor.run import Commands, Manner

        ground = Ground(
            workspace=root,
            user_home=user_home,
            lyma_homes=tuple(dict.fromkeys((home.root, user_home / ".lyma"))),
            write=executor.write,
            writable=tuple(_expanded(folder, user_home) for folder in executor.writable),
            sockets=tuple(_expanded(path, user_home) for path in executor.sockets),
        )
        environment = command_environment(
            environ, key_variables=key_variables, holds_secret=redactor.finds, passed=executor.pass_env
        )
        return Commands(ground, Manner(environment, executor.timeout_s, executor.output_limit))

    return CommandSessions(make)


async def _no_mask(_workspace: Path) -> None:
    raise MaskUnavailable(
        "Agents run on Linux only: nothing here hides Lyma's home from commands.", remedy="Use Linux."
    )


def _user_home(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("HOME") or os.path.expanduser("~")).absolute()  # noqa: PTH111 - Path.home() raises where there is none


def _expanded(path: str, user_home: Path) -> Path:
    return user_home / path[2:] if path == "~" or path.startswith("~/") else Path(path)


def _embedded(settings: Settings) -> EmbeddedServer:
    model = settings.providers.get(EMBEDDED)
    return EmbeddedServer(model.gguf if model else None)


def _resolved_secrets(keys: Mapping[str, tuple[ResolvedKey, ...]]) -> Iterator[Secret]:
    return (key.secret for each in keys.values() for key in each if key.secret)


def usable(keys: tuple[ResolvedKey, ...]) -> bool:
    """Whether a provider with these can be asked: it needs no key, or has one."""
    return not keys or any(key.problem is None for key in keys)


def run_key_command(command: str, environ: Mapping[str, str]) -> str:
    """The output of the command of a `cmd:` key, run by the shell with the environment given.

    Raises LymaError, whose message gives nothing of the output away.
    """
    from lyma_server.isolation.process import run_helper_blocking

    with _interruptible():
        result = run_helper_blocking(["/bin/sh", "-c", command], env=environ, timeout_s=KEY_COMMAND_S)
    if result.status != 0:
        told = (
            "there is no such program" if result.status == NO_SUCH_PROGRAM else f"it ended with status {result.status}"
        )
        raise ConfigError(told, detail=result.stderr.decode(errors="replace"))
    return result.stdout.decode(errors="replace")


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C end a command that waits for its owner: an event loop would only hear of it when that is over."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or handler is signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _providers(settings: Settings, keys: Mapping[str, tuple[ResolvedKey, ...]]) -> tuple[Provider, ...]:
    names = [name for name in settings.order if usable(keys[name])]
    return tuple(_provider(name, settings.providers[name], keys[name]) for name in names)


def _provider(name: str, settings: ProviderSettings, keys: tuple[ResolvedKey, ...]) -> Provider:
    resolved = tuple(Key(key.secret, key.account) for key in keys if key.problem is None)
    return Provider(name, settings.api, settings.base_url, settings.model or "auto", resolved or (Key(),), settings)
