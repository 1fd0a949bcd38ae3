"""The places that the short list protects, as data."""

from __future__ import annotations

import os
import posixpath
from functools import lru_cache

from attrs import Factory, frozen

from lyma_server.executor.marks import STAR, has_pattern
from lyma_server.executor.paths import covers, normalise
from lyma_server.executor.zones import Zone, ZoneTree, zone_of

ROOT = Zone((), "the root of the file system")

SYSTEM_TREES = (
    "bin", "boot", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "media", "mnt", "nix", "opt", "proc", "root",
    "run", "sbin", "snap", "srv", "sys", "usr", "var", "usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "usr/libexec",
    "usr/share", "usr/include", "usr/local", "usr/local/bin", "usr/local/lib", "usr/local/share", "usr/local/sbin",
    "var/lib", "var/log", "var/lib/dpkg", "var/lib/apt", "var/lib/rpm", "var/lib/docker", "var/lib/postgresql",
    "var/lib/mysql", "var/lib/systemd", "var/spool", "var/spool/cron", "var/mail", "var/www", "var/backups", "lib/modules",
    "usr/lib/modules", "usr/lib/systemd", "usr/lib/x86_64-linux-gnu", "boot/efi", "boot/grub", "etc/ssh", "etc/pam.d",
    "etc/systemd", "etc/sudoers.d", "etc/ssl", "etc/cron.d", "etc/security", "etc/apt", "etc/init.d", "etc/network",
    "dev/disk", "dev/mapper", "sys/firmware", "sys/firmware/efi", "sys/firmware/efi/efivars", "sys/class", "sys/devices", "System", "Library", "Applications", "Users", "Volumes", "private", "private/etc",
    "private/var", "cores", "mnt/c", "mnt/c/Windows", "mnt/c/Users", "data",
)  # fmt: skip
"""Top-level trees and the trees below them without which a machine does not run."""

SHARED_TREES = frozenset(
    {"usr/local", "usr/local/bin", "usr/local/lib", "usr/local/share", "opt", "srv", "mnt", "media", "var/www", "data"}
)
"""Trees that are installed into or served from: their owner may be changed."""

PERSONAL_FOLDERS = (
    "Documents", "Desktop", "Downloads", "Pictures", "Photos", "Music", "Videos", "Movies", "Public", "Templates", "Library",
    "Library/Application Support", "Library/Keychains", "Library/Mail", "Dropbox", "OneDrive", "Mail", "Maildir", ".config",
    ".local", ".local/share", ".mozilla", ".thunderbird", "snap",
)  # fmt: skip

CREDENTIAL_FOLDERS = (
    ".ssh", ".gnupg", ".aws", ".kube", ".azure", ".docker", ".password-store", ".config/gcloud", ".config/gh", ".pki",
    ".local/share/keyrings", ".config/op", ".netrc", ".git-credentials",
)  # fmt: skip

CREDENTIAL_FILES = (".aws/credentials", ".netrc", ".git-credentials", ".config/gh/hosts.yml", ".docker/config.json", ".kube/config", ".npmrc", ".pypirc",
                ".config/gcloud", ".azure", ".password-store", ".local/share/keyrings", ".mozilla", ".config/google-chrome", ".bash_history",
                ".zsh_history")  # fmt: skip
"""Files and folders that let in whoever reads them: these may be used here, and not sent away."""

ANY_DEPTH = f"/{STAR}{STAR}/"
"""Folders of any depth, none included."""

WORKSPACE = "the workspace root"
CREDENTIALS = "a folder of credentials or settings"
HOME_PARENTS = ("home", "Users")


@frozen(eq=False)
class Places:
    """What a command is judged against. Absolute paths, as they are written; `trees` are made when they are asked for."""

    home: str
    workspace: str
    lyma_home: str
    wiped: ZoneTree
    kept: ZoneTree
    lyma: ZoneTree
    own: ZoneTree
    homes: tuple[Zone, ...]
    trees: dict[tuple[str, ...], ZoneTree] = Factory(dict)

    def find_wiped(self, path: str) -> str | None:
        """The label of the protected place that removing `path` with all it holds would take, or None."""
        found = self.wiped.around(path) or self.wiped.emptied(path)
        if found is None and ANY_DEPTH in path:
            found = self.find_wiped(path.replace(ANY_DEPTH, "/", 1))
        if found is not None:
            return found
        folder, _, last = path.rpartition("/")
        if has_pattern(last) and covers(last, ".."):
            return self.find_wiped(normalise("..", folder or "/"))
        return None

    def find_emptied(self, path: str) -> str | None:
        """The label of the protected place, the workspace aside, of which `path` is every file."""
        return self.kept.emptied(path) or (
            self.find_emptied(path.replace(ANY_DEPTH, "/", 1)) if ANY_DEPTH in path else None
        )

    def is_lyma(self, path: str) -> bool:
        """Whether `path` lies in Lyma's home."""
        return self.lyma.holding(path) is not None

    def is_own(self, path: str) -> bool:
        """Whether `path` lies in the workspace."""
        return self.own.holding(path) is not None

    def holds_credentials(self, path: str) -> bool:
        """Whether a file or folder is, lies in, or is the folder of something in CREDENTIAL_FILES."""
        inside = (f"{path.rstrip('/')}/{posixpath.basename(place)}" for place in CREDENTIAL_FILES if "/" in place)
        return any(self.in_homes(each, *CREDENTIAL_FILES) for each in (path, *inside))

    def in_homes(self, path: str, *names: str) -> bool:
        """Whether `path` is, or lies in, one of `names` in any home; a pattern that may stand for it counts."""
        tree = self.trees.get(names)
        if tree is None:
            tree = ZoneTree(Zone((*home.parts, *name.split("/")), name) for home in self.homes for name in names)
            self.trees[names] = tree
        return tree.holding(path) is not None


def _home_zones(home: tuple[str | None, ...]) -> list[Zone]:
    zones = [Zone(home, "a home folder")]
    zones += [Zone((*home, *name.split("/")), "a personal folder") for name in PERSONAL_FOLDERS]
    zones += [Zone((*home, *name.split("/")), CREDENTIALS) for name in CREDENTIAL_FOLDERS]
    return zones


def _spellings(path: str) -> dict[str, None]:
    return dict.fromkeys((os.path.normpath(path), os.path.realpath(path)))


@lru_cache(maxsize=64)
def find_places(home: str, workspace: str, lyma_home: str) -> Places:
    """The protected places of one user and workspace, with every folder that leads to them."""
    zones = [ROOT, *(zone_of(tree, "a top-level tree of the system") for tree in SYSTEM_TREES)]
    homes = [zone_of(path) for path in _spellings(home)] + [zone_of("/root")]
    homes += [Zone((parent, None), "") for parent in HOME_PARENTS]
    for zone in homes:
        zones += _home_zones(zone.parts)
    lyma = [zone_of(path, "Lyma's home") for path in _spellings(lyma_home)]
    lyma += [Zone((*zone.parts, ".lyma"), "Lyma's home") for zone in homes]
    own = [zone_of(path, WORKSPACE) for path in _spellings(workspace)] if workspace else []
    return Places(
        home=os.path.normpath(home),
        workspace=os.path.normpath(workspace) if workspace else "",
        lyma_home=os.path.normpath(lyma_home),
        wiped=ZoneTree([*zones, *own, *lyma]),
        kept=ZoneTree([*zones, *lyma]),
        lyma=ZoneTree(lyma),
        own=ZoneTree(own),
        homes=tuple(dict.fromkeys(homes)),
    )
