"""A throwaway home and workspace, and what runs commands in it, with every real part."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from lyma_server.executor.ground import Ground
from lyma_server.executor.run import Commands, Manner

if TYPE_CHECKING:
    from collections.abc import Iterator

PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"


@contextmanager
def throwaway_home() -> Iterator[Path]:
    """A home folder outside /tmp, which is private inside; with a workspace `work` and Lyma's home in it."""
    base = Path(tempfile.mkdtemp(prefix="lyma-test-", dir="/var/tmp"))
    home = base / "home" / "dev"
    (home / "work").mkdir(parents=True)
    (home / ".lyma").mkdir(mode=0o700)
    (home / ".lyma" / "config.toml").write_text("key = 'canary'")
    try:
        yield home
    finally:
        shutil.rmtree(base)


def commands_in(home: Path, *, environment: dict[str, str] | None = None, **manner) -> Commands:
    """What runs commands in `home`/work."""
    ground = {name: manner.pop(name) for name in ("write", "writable", "sockets") if name in manner}
    given = {"PATH": PATH, "HOME": str(home), "LANG": os.environ.get("LANG", "C.UTF-8"), **(environment or {})}
    return Commands(
        Ground(workspace=home / "work", user_home=home, lyma_homes=(home / ".lyma",), **ground), Manner(given, **manner)
    )


UNSEEN = "python3 -c 'import json, subprocess, sys; subprocess.run(json.load(open(sys.argv[1])))' words; echo went on"
"""Runs the words in a file of data: only when they are executed can anybody see them."""


def hide_words(home: Path, *words: str) -> None:
    """Put the words that UNSEEN runs into the workspace."""
    (home / "work/words").write_text(json.dumps(words))
