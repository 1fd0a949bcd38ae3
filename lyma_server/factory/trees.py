"""Programs of others as whole trees of files: copied to `trees/sha256-<hex>`, named by the digest of their listing.

The listing names every file with its digest, so one hash stands for every byte, and a person can be shown what there is.
A run gets a copy that was verified file by file while it was made.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from attrs import define, field

from lyma_server.errors import HashMismatch, UsageError
from lyma_server.factory.canonical import canonical, digest, parse_strictly
from lyma_server.factory.folder import Demands, Folder, Unfit
from lyma_server.factory.staging import open_to_readers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lyma_server.protocol.base import Json

LARGEST: Final = 512 << 20
"""Bytes of all files."""
LARGEST_LISTING: Final = 1 << 20
"""Bytes; some nine thousand files."""
DEEPEST: Final = 32

Listing = dict[str, dict[str, Any]]
"""By relative path: `{sha256, size, executable}`, or `{link}` with a relative target inside the tree."""


def survey(root: Path, place: Path) -> bytes:
    """Copy the tree below `root` to the new folder `place`; its listing. Raises UsageError for what cannot be in one."""
    copying = _Copying(place)
    try:
        real = root.resolve(strict=True)
    except OSError as error:
        problem = f"The tree {root} cannot be used ({error.strerror})"
        raise UsageError(f"{problem}; set factory.tree to the folder of the external factory.") from error
    try:
        with Folder.open(real) as folder:
            place.mkdir(mode=0o700)
            copying.copy(folder)
    except (Unfit, OSError) as error:
        problem = error.problem if isinstance(error, Unfit) else f"cannot be copied ({error.strerror})"
        raise UsageError(f"The tree {root} cannot be used: something in it {problem}.") from error
    if not copying.listing:
        raise UsageError(f"The tree {root} is empty; set factory.tree to the folder of the external factory.")
    return _encoded(copying.listing)


def save(files: Mapping[str, tuple[bytes, bool]], trees: Path) -> bytes:
    """Store a tree that is given as bytes, each with whether it can be executed; its listing. Raises UsageError."""
    listing: Listing = {}
    draft = _draft(trees)
    try:
        draft.mkdir(mode=0o700)
        for path, (content, executable) in sorted(files.items()):
            _check_name(path)
            _write(draft / path, content, executable=executable)
            listing[path] = _entry(content, executable=executable)
        return _keep(draft, _encoded(listing), trees)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def adopt(root: Path, trees: Path) -> bytes:
    """Store the tree below `root`; its listing. Raises UsageError."""
    draft = _draft(trees)
    try:
        return _keep(draft, survey(root, draft), trees)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def lay_out(listing: bytes, trees: Path, place: Path) -> None:
    """Copy a stored tree to the new folder `place`, and verify each byte on the way. Raises HashMismatch."""
    name = f"sha256-{digest(listing)}"
    _note_use(trees / name)
    place.mkdir(mode=0o700)
    try:
        with Folder.open(trees / name) as root:
            for path, entry in entries(listing):
                _put(root, place / path, path, entry)
    except (Unfit, OSError) as error:
        raise HashMismatch(
            f"The program in {name} is not what was approved; set it up again.", detail=str(error)
        ) from error
    open_to_readers(place)


def discard(trees: Path, listing: bytes) -> None:
    """Remove a stored tree, if it is there."""
    shutil.rmtree(trees / f"sha256-{digest(listing)}", ignore_errors=True)


def prune(trees: Path, oldest: float) -> int:
    """Remove the trees that were used last before `oldest`, in seconds since 1970; the number removed."""
    removed = 0
    for place in trees.glob("sha256-*"):
        with suppress(OSError):
            facts = place.lstat()
            if stat.S_ISDIR(facts.st_mode) and facts.st_mtime < oldest:
                shutil.rmtree(place, ignore_errors=True)
                removed += 1
    return removed


def _put(root: Folder, target: Path, path: str, entry: Mapping[str, Any]) -> None:
    if "link" in entry:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(entry["link"])
    else:
        _write(target, _verified(root, path, entry), executable=entry["executable"])


def _verified(root: Folder, path: str, entry: Mapping[str, Any]) -> bytes:
    content = _read(root, path.split("/"))
    if len(content) != entry["size"] or digest(content) != entry["sha256"]:
        raise Unfit("changed", f"{path} is another one")
    return content


def _read(folder: Folder, names: list[str]) -> bytes:
    if len(names) == 1:
        return folder.read(names[0], Demands(LARGEST))
    with folder.inside(names[0]) as inner:
        return _read(inner, names[1:])


@define
class _Copying:
    """A copy under way, to the folder `place`."""

    place: Path
    listing: Listing = field(factory=dict)
    size: int = 0

    def copy(self, folder: Folder, prefix: str = "") -> None:
        for name in folder.names():
            path = f"{prefix}{name}"
            _check_name(path)
            kind = folder.kind(name)
            if kind == "folder":
                with folder.inside(name) as inner:
                    self.copy(inner, f"{path}/")
            elif kind == "file":
                self._take(folder, name, path)
            else:
                self.listing[path] = {"link": _target(folder, name, path)}

    def _take(self, folder: Folder, name: str, path: str) -> None:
        content = folder.read(name, Demands(LARGEST))
        executable = folder.is_executable(name)
        self.size += len(content)
        if self.size > LARGEST:
            raise Unfit("too_large", f"has more than {LARGEST} bytes")
        _write(self.place / path, content, executable=executable)
        self.listing[path] = _entry(content, executable=executable)


def _target(folder: Folder, name: str, path: str) -> str:
    """Where a link leads; only inside the tree."""
    target = folder.link_target(name)
    at = PurePosixPath(path).parent
    for part in PurePosixPath(target).parts:
        if part == ".." and str(at) == ".":
            raise Unfit("symlink", f"is a link that leads out of it ({path})")
        at = at.parent if part == ".." else at / part
    if target.startswith("/"):
        raise Unfit("symlink", f"is a link to an absolute path ({path}); copy what it leads to")
    return target


def _entry(content: bytes, *, executable: bool) -> dict[str, Json]:
    return {"sha256": digest(content), "size": len(content), "executable": executable}


def _write(target: Path, content: bytes, *, executable: bool) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:  # noqa: PTH123 - it is a descriptor
        file.write(content)
        os.fchmod(descriptor, 0o555 if executable else 0o444)


def _check_name(path: str) -> None:
    names = path.split("/")
    if len(names) > DEEPEST or not path.isprintable() or any(name in {"", ".", ".."} for name in names):
        raise UsageError(f"A tree cannot hold a file named {path[:200]!r}; rename it.")


def _encoded(listing: Listing) -> bytes:
    encoded = canonical(listing)
    if len(encoded) > LARGEST_LISTING:
        raise UsageError(f"The tree has too many files ({len(listing)}); leave out what is not needed to run it.")
    return encoded


def _draft(trees: Path) -> Path:
    trees.mkdir(mode=0o700, parents=True, exist_ok=True)
    return trees / f".new-{secrets.token_hex(8)}"


def _keep(draft: Path, listing: bytes, trees: Path) -> bytes:
    """Give it the name that its listing says, unless it is there and sound."""
    place = trees / f"sha256-{digest(listing)}"
    if _is_sound(place, listing):
        _note_use(place)
        return listing
    if place.exists():
        aside = _draft(trees)
        place.rename(aside)
        shutil.rmtree(aside, ignore_errors=True)
    try:
        draft.rename(place)
    except OSError as error:  # another process has just put it there
        if not _is_sound(place, listing):
            raise HashMismatch(f"{place} cannot be written; mend it and try again.", detail=str(error)) from error
    return listing


def _note_use(place: Path) -> None:
    """Its time says when it was used last."""
    with suppress(OSError):
        os.utime(place)


def _is_sound(place: Path, listing: bytes) -> bool:
    try:
        with Folder.open(place) as root:
            for path, entry in entries(listing):
                if "link" not in entry:
                    _verified(root, path, entry)
    except Unfit:
        return False
    return True


def entries(listing: bytes) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What a listing names."""
    yield from parse_strictly(listing).items()
