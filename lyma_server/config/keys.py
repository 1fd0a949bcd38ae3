"""From `env:` and `cmd:` references to keys. What cannot be resolved is a problem of that key, not of the start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from lyma_server.config.model import Settings
    from lyma_server.secret import Secret


@frozen
class ResolvedKey:
    """A key, or else the sentence that says why there is none. `source` says where it stands, and gives nothing away."""

    secret: Secret | None
    account: str | None
    source: str
    problem: str | None = None


def resolve_keys(
    settings: Settings,
    environ: Mapping[str, str],
    run_command: Callable[[str], str],
    providers: Iterable[str] | None = None,
) -> dict[str, tuple[ResolvedKey, ...]]:
    """Resolve the keys of `providers` (all by default). No keys at all: the provider needs none.

    `run_command` takes the text after `cmd:` and returns its output, or raises LymaError.
    """
    raise NotImplementedError(settings, environ, run_command, providers)
