"""What probing the providers found, as sentences with a remedy each. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from lyma_server.router.policy import CLASSES
from lyma_server.router.prices import is_local

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lyma_server.router.listings import Probe

OUT_OF_REACH = {"connect_error", "dns_error", "timeout"}


@frozen
class Finding:
    """What was found: `ok`, a `note` (something is less good than it could be) or `bad` (something does not work)."""

    state: str
    text: str
    remedy: str = ""


def findings_of(probes: Iterable[Probe]) -> Iterator[Finding]:
    """One for each fault, for each provider that answers and for each key that was woken. What is wrong with a provider is said
    once, not for each of its keys; that no provider beyond this machine can be reached is said first, since it explains the rest.
    """
    every = tuple(probes)
    far = [probe for probe in every if not is_local(probe.where) and probe.where is not None]
    if len({probe.provider for probe in far}) > 1 and all(probe.class_ in OUT_OF_REACH for probe in far):
        yield Finding(
            "bad",
            "no provider beyond this machine can be reached: the network seems to be down",
            "check the network, and HTTPS_PROXY where a proxy is needed",
        )
    told: set[Finding] = set()
    for probe in every:
        finding = _answer(probe) if probe.class_ == "ok" else _fault(probe)
        if finding not in told:
            told.add(finding)
            yield finding
        if probe.woken:
            who = f"key {probe.key} of {probe.provider}" if probe.key else probe.provider
            yield Finding("ok", f"{who} works, so it is asked again: it had been put aside")


def _fault(probe: Probe) -> Finding:
    of_the_key = probe.key is not None and CLASSES[probe.class_].key != "none"
    who = f"{probe.provider}: key {probe.key}" if of_the_key else f"{probe.provider}:"
    words = f"is not accepted at {probe.where}" if probe.class_ == "auth_invalid" and of_the_key else probe.words
    return Finding("bad", f"{who} {words}", probe.advice)


def _answer(probe: Probe) -> Finding:
    if probe.model_known is not False:
        return Finding("ok", f"{probe.provider} answers and offers {probe.model}")
    names = ", ".join(probe.near)
    remedy = f"lyma config set providers.{probe.provider}.model MODEL, for example {names}"
    return Finding("note", f"{probe.provider} answers but does not list {probe.model}", remedy)
