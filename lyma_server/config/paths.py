"""Where Lyma keeps things: one folder, for its owner alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from lyma_server.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

HOME_VARIABLE = "LYMA_HOME"


@frozen
class Home:
    """`~/.lyma` or `$LYMA_HOME`: an absolute path. Naming a file here does not create it."""

    root: Path

    @classmethod
    def find(cls, environ: Mapping[str, str]) -> Home:
        """Find the home that `environ` asks for. Raises ConfigError where that is not an absolute path."""
        user_home = environ.get("HOME") or os.path.expanduser("~")  # noqa: PTH111 - Path.home() raises where there is none
        chosen = environ.get(HOME_VARIABLE) or os.path.join(user_home, ".lyma")  # noqa: PTH118 - "~/x" is no path yet
        root = Path(user_home, chosen[2:]) if chosen.startswith("~/") else Path(chosen)
        if not root.is_absolute():
            raise ConfigError(f"{HOME_VARIABLE} is {chosen}; it must be an absolute path.", key=HOME_VARIABLE)
        return cls(root)

    @property
    def config(self) -> Path:
        return self.root / "config.toml"

    @property
    def state_db(self) -> Path:
        return self.root / "state.db"

    @property
    def sessions(self) -> Path:
        return self.root / "sessions"

    @property
    def agents(self) -> Path:
        return self.root / "agents"

    @property
    def approvals(self) -> Path:
        return self.root / "approvals"

    @property
    def runs(self) -> Path:
        return self.root / "runs"

    @property
    def trees(self) -> Path:
        return self.root / "trees"

    @property
    def audit(self) -> Path:
        return self.root / "audit.jsonl"

    @property
    def log(self) -> Path:
        return self.root / "log"

    def ensure(self) -> None:
        """Create the folder, or close it to others. Raises ConfigError where it cannot be made the user's own."""
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self.root.samefile("/"):  # root's, but closed to others it would end the system
                raise ConfigError(f"{self.root} cannot be Lyma's home; set {HOME_VARIABLE} to a folder of your own.")
            facts = self.root.stat()
            if facts.st_uid != os.geteuid():
                raise ConfigError(f"{self.root} belongs to another user; set {HOME_VARIABLE} to a folder of your own.")
            if stat.S_IMODE(facts.st_mode) & 0o077:
                self.root.chmod(0o700)
        except OSError as error:
            raise ConfigError(
                f"{self.root} cannot be created ({error.strerror}); set {HOME_VARIABLE} to a folder that can."
            ) from error
