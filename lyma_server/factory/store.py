"""Compiled agents on the disk, each in a folder that its hash names: `agents/sha256-<hex>/`, 0555, its files 0444.

What is read is read once and verified against the hash; nothing extra, missing, linked or changed passes.
"""

from __future__ import annotations

import re
import secrets
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final

from lyma_server.errors import HashMismatch, LymaError, UsageError
from lyma_server.factory.bundle import INSTRUCTIONS, MANIFEST, TREE, Bundle
from lyma_server.factory.canonical import HASH, canonical, digest, parse_strictly
from lyma_server.factory.folder import Demands, Folder, Unfit
from lyma_server.factory.spec_kinds import FILE_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from lyma_server.protocol.base import Json

_FOLDER: Final = re.compile(r"sha256-[0-9a-f]{64}")
_FILE: Final = re.compile(
    rf"{re.escape(INSTRUCTIONS)}|{re.escape(TREE)}|tools/{FILE_NAME}\.py|schema/{FILE_NAME}\.json"
)
_LARGEST_MANIFEST: Final = 1 << 20
_LARGEST_FILE: Final = 1 << 20
"""Bytes."""


class Store:
    """The folder `agents` in Lyma's home; it is made when something is first put into it."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def save(self, bundle: Bundle, provenance: Mapping[str, Json] | None = None) -> None:
        """Store a bundle, whole or not at all. `provenance` (model, task, time) lies beside it and is not hashed.

        Raises LymaError where it cannot be stored.
        """
        name = folder_name(bundle.hash)
        try:
            with self._opened(make=True) as agents, agents.locked():
                if not self._holds(agents, name, bundle):
                    self._put(agents, name, bundle)
                if provenance is not None:
                    agents.replace(f"{name}.provenance.json", canonical(dict(provenance)), 0o600)
        except Unfit as error:
            raise LymaError(f"The agent cannot be stored in {self._root}: something there {error.problem}.") from error

    def load(self, wanted: str) -> Bundle:
        """Read and verify the bundle with this hash, in full.

        Raises UsageError where there is none or `wanted` is no full hash, HashMismatch where it is not what its hash says.
        """
        name = folder_name(wanted)
        try:
            with self._opened() as agents, agents.inside(name) as folder:
                return _verified(folder, wanted)
        except Unfit as error:
            if error.code == "missing":
                raise UsageError(f"There is no compiled agent {wanted}; `lyma agents` lists them.") from None
            raise HashMismatch(
                f"The agent {wanted} is not what its hash says: {error.problem}; compile it again.", hash=wanted
            ) from error

    @contextmanager
    def in_use(self, wanted: str) -> Iterator[None]:
        """Keep a bundle from being removed meanwhile; one that is not there is none of our business.

        Raises UsageError where it is being removed.
        """
        with ExitStack() as stack:
            try:
                with self._opened() as agents:
                    stack.enter_context(agents.in_use(folder_name(wanted)))
            except Unfit as error:
                if error.code == "in_use":
                    raise UsageError(f"The agent {wanted} is being removed; compile it again.") from error
            yield

    def remove(self, wanted: str, agreed: Callable[[], object]) -> None:
        """Remove a bundle, sound or not. `agreed` is called when nothing stands against it any more.

        Raises UsageError where there is none, or it is in use, and LymaError where it cannot be removed.
        """
        name = folder_name(wanted)
        try:
            with self._opened() as agents, agents.locked(), ExitStack() as stack:
                if agents.kind(name) == "folder":
                    stack.enter_context(agents.in_use(name, alone=True))
                agreed()
                _discard(agents, name)
                agents.remove(f"{name}.provenance.json")
        except Unfit as error:
            if error.code == "missing":
                raise UsageError(f"There is no compiled agent {wanted}; `lyma agents` lists them.") from None
            if error.code == "in_use":
                raise UsageError(f"The agent {wanted} runs just now; end that first. Nothing was removed.") from None
            raise LymaError(f"The agent {wanted} cannot be removed: something of it {error.problem}.") from error

    def provenance(self, wanted: str) -> Mapping[str, Any]:
        """Where a bundle came from, as far as that was written down; nobody vouches for it."""
        try:
            with self._opened() as agents:
                content = agents.read(f"{folder_name(wanted)}.provenance.json", Demands(1 << 16, own=True))
            facts = parse_strictly(content)
        except (Unfit, ValueError):
            return {}
        return facts if isinstance(facts, dict) else {}

    def hashes(self) -> tuple[str, ...]:
        """The hashes of all that is stored, sorted; none of it is verified."""
        try:
            with self._opened() as agents:
                return tuple(name.replace("-", ":", 1) for name in agents.names() if _FOLDER.fullmatch(name))
        except Unfit as error:
            if error.code == "missing":
                return ()
            raise UsageError(f"{self._root} {error.problem}; see to it that you can read it.") from error

    def find(self, beginning: str) -> str:
        """The full hash that `beginning` (with or without `sha256:`, at least 6 digits) is the beginning of.

        Raises UsageError where there is none, or more than one.
        """
        digits = beginning.lower().removeprefix("sha256:").removeprefix("sha256-")
        if not re.fullmatch(r"[0-9a-f]{6,64}", digits):
            raise UsageError(
                f"{beginning[:80]!r} is no hash; give at least 6 of its digits (`lyma agents` shows them)."
            )
        found = [each for each in self.hashes() if each.startswith(f"sha256:{digits}")]
        if len(found) != 1:
            problem = "There is no compiled agent" if not found else "There is more than one compiled agent"
            raise UsageError(f"{problem} that begins with {digits}; `lyma agents` lists them.")
        return found[0]

    @contextmanager
    def _opened(self, *, make: bool = False) -> Iterator[Folder]:
        with (
            Folder.open(self._root.parent) as home,
            home.inside(self._root.name, make=0o700 if make else None) as agents,
        ):
            agents.check(private=False)
            yield agents

    def _holds(self, agents: Folder, name: str, bundle: Bundle) -> bool:
        """Whether it is there and sound. What is not sound goes: its hash says what belongs in its place."""
        if name not in agents.names():
            return False
        try:
            with agents.inside(name) as folder:
                return _verified(folder, bundle.hash) == bundle
        except Unfit:
            _discard(agents, name)
            return False

    def _put(self, agents: Folder, name: str, bundle: Bundle) -> None:
        draft = f".new-{secrets.token_hex(8)}"
        try:
            with agents.inside(draft, make=0o700) as folder:
                _write(folder, bundle)
            agents.rename(draft, name)
        except BaseException:
            if draft in agents.names():
                agents.remove_tree(draft)
            raise


def _discard(agents: Folder, name: str) -> None:
    """Remove what bears a name, which it has no more from the first step on."""
    aside = f".bad-{secrets.token_hex(8)}"
    agents.rename(name, aside)
    if agents.kind(aside) == "folder":
        agents.remove_tree(aside)
    else:
        agents.remove(aside)


def folder_name(wanted: str) -> str:
    """The folder of a hash. Raises UsageError where it is no full one."""
    if not HASH.fullmatch(wanted):
        raise UsageError(f"{wanted[:80]!r} is not the full hash of an agent; it is sha256: and 64 digits.")
    return wanted.replace(":", "-", 1)


def _write(folder: Folder, bundle: Bundle) -> None:
    inner = sorted({name.partition("/")[0] for name in bundle.files if "/" in name})
    for name in inner:
        with folder.inside(name, make=0o700) as below:
            for path, content in bundle.files.items():
                if path.startswith(f"{name}/"):
                    below.write_new(path.removeprefix(f"{name}/"), content, 0o444)
            below.set_mode(0o555)
            below.sync()
    for path, content in {**bundle.files, MANIFEST: bundle.manifest}.items():
        if "/" not in path:
            folder.write_new(path, content, 0o444)
    folder.set_mode(0o555)
    folder.sync()


def _verified(folder: Folder, wanted: str) -> Bundle:
    """Read everything in an open folder once, and hold it to the hash. Raises Unfit."""
    folder.check(private=False)
    manifest = folder.read(MANIFEST, Demands(_LARGEST_MANIFEST, own=True))
    if f"sha256:{digest(manifest)}" != wanted:
        raise Unfit("changed", "its manifest is another one")
    listed = _listed(manifest)
    there = dict(_contents(folder, listed))
    for name, facts in listed.items():
        content = there[name]
        if len(content) != facts["size"] or digest(content) != facts["sha256"]:
            raise Unfit("changed", f"{name} is another one")
    return Bundle(manifest, there)


def _contents(folder: Folder, listed: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    """All files but the manifest, exactly those that it lists."""
    inner = {name.partition("/")[0] for name in listed if "/" in name}
    expected = {name.partition("/")[0] for name in listed} | {MANIFEST}
    _compare(set(folder.names()), expected, "")
    for name in sorted(listed):
        if "/" not in name:
            yield name, folder.read(name, Demands(_LARGEST_FILE, own=True))
    for name in sorted(inner):
        with folder.inside(name) as below:
            below.check(private=False)
            wanted = {path.removeprefix(f"{name}/") for path in listed if path.startswith(f"{name}/")}
            _compare(set(below.names()), wanted, f"{name}/")
            for each in sorted(wanted):
                yield f"{name}/{each}", below.read(each, Demands(_LARGEST_FILE, own=True))


def _compare(there: set[str], expected: set[str], prefix: str) -> None:
    if there != expected:
        odd = min(there ^ expected)
        problem = "is there and not listed" if odd in there else "is listed and not there"
        raise Unfit("changed", f"{prefix}{odd} {problem}")


def _listed(manifest: bytes) -> Mapping[str, Any]:
    """The files that a manifest lists. Its hash was right, so it is what was compiled; it is not trusted all the same."""
    try:
        facts = parse_strictly(manifest)
        listed = facts["files"]
        sound = canonical(facts) == manifest and all(
            _FILE.fullmatch(name) and set(each) == {"sha256", "size"} for name, each in listed.items()
        )
    except (ValueError, LookupError, TypeError, AttributeError):
        sound, listed = False, {}
    if not sound or INSTRUCTIONS not in listed:
        raise Unfit("changed", "its manifest is malformed")
    files: Mapping[str, Any] = listed
    return files
