"""What a person is shown before approving an agent: its capabilities, every word and line of it, and what is new.

The approval is bound to exactly this text. Hidden characters are written out, so that what is shown is what is there.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from attrs import frozen

from lyma_server.errors import CompileFailed, UsageError
from lyma_server.factory.bundle import INSTRUCTIONS
from lyma_server.factory.capabilities import capabilities
from lyma_server.factory.characters import visible
from lyma_server.factory.comparison import compare
from lyma_server.factory.versions import LARGEST_DEPTH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lyma_server.factory.bundle import Bundle

_MARGIN: Final = "  | "
"""Stands before every line that is the agent's own, so that it cannot pass for one of Lyma's."""


@frozen
class Presentation:
    """`title` is one line, `summary` a few; `text` is everything, the summary included."""

    title: str
    summary: str
    text: str

    @property
    def shown(self) -> bytes:
        """What an approval is bound to."""
        return f"{self.title}\0{self.summary}\0{self.text}".encode()


def present(bundle: Bundle, previous: Bundle | None, load: Callable[[str], Bundle]) -> Presentation:
    """Present an agent and all agents that it may run; `previous` was approved last under its name.

    Raises what `load` does for an agent that is not there, CompileFailed where agents nest too deeply.
    """
    closure = closure_of(bundle, load)
    summary = "\n".join(_summary(bundle, previous))
    parts = [summary, *_changes(bundle, previous), *_content(bundle)]
    for delegate in closure:
        parts += [_rule(f"the agent {delegate.name} that it may run"), *_summary(delegate, None), *_content(delegate)]
    title = f"Approve the agent {bundle.name}, {bundle.hash}?"
    return Presentation(title, summary, "\n".join(parts) + "\n")


def closure_of(bundle: Bundle, load: Callable[[str], Bundle]) -> tuple[Bundle, ...]:
    """All agents that an agent may run, each verified. Raises CompileFailed where one of them runs agents in turn."""
    found = tuple(_delegate(bundle, each, load) for each in bundle.delegates)
    for delegate in found:
        if delegate.delegates:
            raise CompileFailed(
                f"{bundle.name} may run {delegate.name}, which runs agents in turn; only {LARGEST_DEPTH} level is allowed.",
                diagnostics=[],
            )
    return found


def _delegate(bundle: Bundle, hash_: str, load: Callable[[str], Bundle]) -> Bundle:
    try:
        return load(hash_)
    except UsageError as error:
        raise UsageError(
            f"{bundle.name} may run {hash_}, which is not compiled here; compile it, or leave it out of delegate.agents."
        ) from error


def _summary(bundle: Bundle, previous: Bundle | None) -> Iterator[str]:
    yield f"{bundle.name}: {visible(bundle.facts['spec']['purpose'])}"
    yield bundle.hash
    for capability in capabilities(bundle):
        yield f"  {'+' if capability.can else '-'} {visible(capability.text)}"
    if previous is not None:
        yield _news(bundle, previous)


def _news(bundle: Bundle, previous: Bundle) -> str:
    comparison = compare(previous, bundle)
    if previous == bundle:
        return "It is the one that was approved before."
    if comparison.only_runner:
        return f"Only Lyma's runner changed since {comparison.previous} was approved."
    return f"It differs from {comparison.previous}, which was approved before."


def _changes(bundle: Bundle, previous: Bundle | None) -> Iterator[str]:
    if previous is not None and previous != bundle:
        yield _rule("what changed since it was approved last")
        yield _quoted(compare(previous, bundle).text)


def _content(bundle: Bundle) -> Iterator[str]:
    yield _rule(f"instructions of {bundle.name}")
    yield _quoted(bundle.text(INSTRUCTIONS))
    for name in bundle.files:
        if name != INSTRUCTIONS:
            yield _rule(f"{name} of {bundle.name}")
            yield _quoted(_readable(name, bundle.text(name)))
    yield _rule(f"manifest of {bundle.name}")
    yield _quoted(_indented(bundle.manifest.decode()))


def _readable(name: str, text: str) -> str:
    return _indented(text) if name.endswith(".json") else text


def _indented(text: str) -> str:
    return json.dumps(json.loads(text), indent=2, sort_keys=True, ensure_ascii=False)


def _rule(title: str) -> str:
    return f"\n--- {title} ---"


def _quoted(text: str) -> str:
    lines = visible(text).removesuffix("\n").split("\n")
    return "\n".join(f"{_MARGIN}{line}" for line in lines)
