"""A compiled agent: the bytes that its hash stands for."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from attrs import field, frozen

from lyma_server.factory.canonical import canonical, digest, hash_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lyma_server.protocol.base import Json

MANIFEST: Final = "manifest.json"
INSTRUCTIONS: Final = "instructions.md"
TREE: Final = "tree.json"
"""The listing of the program of an agent that brings its own: every file with its digest."""

Kind: TypeAlias = Literal["data", "exec", "factory"]
"""Carried out by Lyma's runner; a program of its own; a program that drafts and compiles agents."""


@frozen(slots=False)
class Bundle:
    """`manifest` is canonical JSON and names the digest of each of `files`; `hash` is `sha256:` and its digest."""

    manifest: bytes
    files: Mapping[str, bytes] = field(repr=False)

    @cached_property
    def hash(self) -> str:
        return hash_of(self.manifest)

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """The manifest, parsed."""
        import json

        facts: Mapping[str, Any] = json.loads(self.manifest)
        return facts

    @property
    def name(self) -> str:
        name: str = self.facts["spec"]["name"]
        return name

    @property
    def kind(self) -> Kind:
        kind: Kind = self.facts["kind"]
        return kind

    @property
    def program(self) -> tuple[str, ...]:
        """The words of its own program, by their paths inside; none where it is data."""
        return tuple(self.facts.get("program", ()))

    @property
    def delegates(self) -> tuple[str, ...]:
        """Hashes of the agents that it may run."""
        return tuple(self.facts["delegates"])

    def text(self, name: str) -> str:
        """One of its files, as text."""
        return self.files[name].decode()


def make_bundle(facts: Mapping[str, Json], files: Mapping[str, bytes]) -> Bundle:
    """Bind `files` to the manifest that `facts` begin."""
    listed = {name: {"sha256": digest(content), "size": len(content)} for name, content in files.items()}
    return Bundle(canonical({**facts, "files": listed}), dict(sorted(files.items())))


def tools_of(facts: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """The agent's own tools, each with name, file and schema."""
    return tuple(facts["spec"]["tools"]["python"])
