"""Where the agent may read and write."""

from __future__ import annotations

import os
import unicodedata
from contextlib import suppress
from pathlib import Path

from attrs import frozen

from lyma_server.errors import ToolError

NEVER_READ = (Path("/proc"), Path("/sys"), Path("/dev"))
"""They hold environments, memory and devices rather than files."""


@frozen
class Bounds:
    """`root` is the workspace and `home` is Lyma's own folder; both are real paths."""

    root: Path
    home: Path


def workspace_refusal(root: Path, lyma_home: Path, user_homes: tuple[Path, ...]) -> str | None:
    """Why the agent does not work in `root`, or null where it does. All paths are real."""
    if root == Path("/") or any(home.is_relative_to(root) for home in user_homes):
        where = "/" if root == Path("/") else "your home folder"
        return f"Lyma does not work in {where} as a whole, so this answer comes without tools; start it in a project's folder."
    if root.is_relative_to(lyma_home) or lyma_home.is_relative_to(root):
        return "Lyma does not work around its own folder, so this answer comes without tools; start it in a project's folder."
    return None


def user_homes() -> tuple[Path, ...]:
    """The user's home by the environment and by the system, as real paths."""
    import pwd

    homes = {os.path.expanduser("~")}  # noqa: PTH111 - Path.home() raises where there is none
    with suppress(KeyError):
        homes.add(pwd.getpwuid(os.getuid()).pw_dir)
    return tuple(real_path(Path(home)) for home in sorted(homes) if home.startswith("/"))


def real_path(path: Path) -> Path:
    """`path` without links, as far as it exists."""
    return Path(os.path.realpath(path))


def readable_file(text: str, bounds: Bounds) -> Path:
    """The real path of a file that may be read: any but Lyma's own and those of the system's innards."""
    path = real_path(_absolute(text, bounds.root))
    if path.is_relative_to(bounds.home):
        raise ToolError(f"{text} belongs to Lyma itself, so it is not read.")
    if any(path.is_relative_to(folder) for folder in NEVER_READ):
        raise ToolError(f"{text} is not an ordinary file, so it is not read.")
    return path


def readable_folder(text: str, bounds: Bounds) -> Path:
    """The real path of a folder that may be looked through: one that does not hold Lyma's own."""
    path = readable_file(text, bounds)
    if bounds.home.is_relative_to(path):
        raise ToolError(f"{text} holds Lyma's own folder, so it is not looked through; name a folder below it.")
    if not path.is_dir():
        raise ToolError(f"There is no folder {text}.")
    return path


def writable_file(text: str, bounds: Bounds) -> Path:
    """The real path of a file that may be written: in the workspace, not through a link, not in a `.git`."""
    named = Path(os.path.normpath(_absolute(text, bounds.root)))
    path = real_path(_absolute(text, bounds.root))
    if not path.is_relative_to(bounds.root) or path == bounds.root:
        raise ToolError(f"{text} lies outside of the workspace {bounds.root}, so it is not changed.")
    if path.is_relative_to(bounds.home):
        raise ToolError(f"{text} belongs to Lyma itself, so it is not changed.")
    if any(_is_git(part) for part in (*path.parts, *named.parts)):
        raise ToolError(f"{text} belongs to git itself, so it is not changed; use git to change it.")
    if path != named or path.is_symlink():
        raise ToolError(f"{text} leads through a link to {path}, so it is not changed; name the file itself.")
    return path


def relative(path: Path, root: Path) -> str:
    """`path` as a person would name it in the workspace."""
    inside = root != Path("/") and path.is_relative_to(root)
    return path.relative_to(root).as_posix() if inside else str(path)


def _absolute(text: str, root: Path) -> Path:
    if not text or "\0" in text:
        raise ToolError("A path is needed, without NUL characters.")
    if text.startswith("~"):
        raise ToolError(f"{text} begins with ~, which is not expanded here; write the path in full.")
    return root / text


def _is_git(part: str) -> bool:
    """Whether some file system takes `part` for `.git`: by letter case, by trailing dots or by characters it ignores."""
    if len(part) > len(".git") and part.isascii() and not part.endswith((".", " ")):
        return part.casefold() == "git~1"
    shown = "".join(letter for letter in part if unicodedata.category(letter) != "Cf")
    return shown.rstrip(". ").casefold() in {".git", "git~1"}
