"""fs-wipe and perm: removing, moving away and re-owning what a machine or a person lives in."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from lyma_server.executor.effects import RSYNC_VALUES
from lyma_server.executor.marks import show
from lyma_server.executor.options import read_options
from lyma_server.executor.places import CREDENTIALS, SHARED_TREES, WORKSPACE, Places
from lyma_server.executor.rules.base import Case, asks_for_help
from lyma_server.executor.zones import ZoneTree, zone_of

if TYPE_CHECKING:
    from lyma_server.executor.effects import Effect

_SENSITIVE = ("/etc/passwd", "/etc/shadow", "/etc/gshadow", "/etc/group", "/etc/sudoers")
_HIDDEN_FROM_OTHERS = ("/etc/shadow", "/etc/gshadow", "/etc/sudoers")
_ESSENTIAL = re.compile(
    r"^(?:/etc/(?:fstab|crypttab|inittab|ld\.so\.(?:cache|conf)|machine-id|securetty|nsswitch\.conf|pam\.conf)|/boot/(?:vmlinuz|initrd|initramfs|grub)\S*"
    r"|(?:/usr)?/bin/(?:sh|bash|dash|env|sudo|su|login|mount|systemctl)|(?:/usr)?/sbin/(?:init|sshd)|(?:/usr)?/lib(?:64)?/(?:ld-linux\S*|systemd/systemd|libc\.so\S*))$"
)
MODES = frozenset({"chmod", "install", "setcap"})
"""Programs that give a file its mode."""

FEW = 3
"""A folder with fewer things in it may be emptied by naming them."""

_KEY_FILES = (".ssh/id_rsa", ".ssh/id_ed25519", ".ssh/id_ecdsa", ".ssh/id_dsa", ".ssh/authorized_keys")
_BINARIES = ZoneTree(
    zone_of(path)
    for path in ("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/lib", "/lib", "/usr/libexec")
)
_CAPABILITIES = re.compile(
    r"cap_(?:setuid|setgid|sys_admin|dac_override|dac_read_search|sys_ptrace|sys_module|fowner|chown|setfcap|all)\b|=ep\b(?<!_=ep)"
)


def removes_tree(case: Case) -> str | None:
    """A tree is removed, with a protected place in it."""
    if asks_for_help(case) or (case.program == "rsync" and _rehearses(case)):
        return None
    for effect in case.effects:
        if effect.kind == "remove tree" and (label := _wiped(effect, case.places)):
            return f"{show(effect.text)} ({label})"
    return _names_all(case)


def _names_all(case: Case) -> str | None:
    """Everything that lies in a protected folder, named one by one, as a shell does with `*`."""
    named: dict[str, set[str]] = {}
    for effect in case.effects:
        if effect.kind == "remove tree":
            for path in effect.paths:
                folder, _, name = path.rpartition("/")
                named.setdefault(folder or "/", set()).add(name)
    for folder, names in named.items():
        label = case.places.wiped.at(folder) if len(names) >= FEW else None
        present = _visible(folder) if label else set()
        if len(present) >= FEW and present <= names:
            return f"everything in {show(folder)} ({label})"
    return None


def _visible(folder: str) -> set[str]:
    try:
        return {name for name in os.listdir(folder) if not name.startswith(".")}  # noqa: PTH208 - names alone are wanted
    except (OSError, ValueError):
        return set()


def _rehearses(case: Case) -> bool:
    return read_options(case.arguments, RSYNC_VALUES).has("-n", "--dry-run")


def _wiped(effect: Effect, places: Places) -> str | None:
    return next(filter(None, map(places.find_wiped, effect.paths)), None)


def removes_all_files(case: Case) -> str | None:
    """Every file of a protected folder is removed or overwritten, or a key of a person is."""
    for effect in case.effects:
        if effect.kind not in ("remove", "write"):
            continue
        for path in effect.paths:
            if case.places.find_emptied(path) is not None:
                return f"every file in {show(path.rpartition('/')[0] or '/')}"
            if effect.kind == "remove" and (case.places.in_homes(path, *_KEY_FILES) or path in _SENSITIVE):
                return show(effect.text)
            if effect.kind == "write" and _empties_file(case) and case.places.in_homes(path, *_KEY_FILES[:-1]):
                return show(effect.text)
    return None


def _empties_file(case: Case) -> bool:
    """Whether what is written is not a copy of something else."""
    return case.program not in ("cp", "mv", "install", "rsync", "scp") or "/dev/null" in case.arguments


def breaks_start(case: Case) -> str | None:
    """A file that the machine needs to start is removed, moved or emptied."""
    for effect in case.effects:
        if effect.kind in ("remove", "remove tree", "move", "write") and any(map(_ESSENTIAL.match, effect.paths)):
            return show(effect.text)
    return None


def moves_away(case: Case) -> str | None:
    """A protected place, or all that lies in it, is moved elsewhere."""
    targets = [path for effect in case.effects if effect.kind == "write" for path in effect.paths]
    for effect in case.effects:
        if effect.kind != "move":
            continue
        for path in effect.paths:
            label = case.places.find_wiped(path)
            inside = case.places.own.emptied(path) is not None
            stays = inside and (case.program == "git" or (targets and all(map(case.places.is_own, targets))))
            if label and not stays:
                return f"{show(effect.text)} ({label})"
    return None


def changes_tree_modes(case: Case) -> str | None:
    """Owner, mode or access list of a whole protected tree."""
    if asks_for_help(case):
        return None
    for effect in case.effects:
        if effect.kind != "mode tree":
            continue
        for path in effect.paths:
            label = case.places.find_wiped(path)
            if label and not _may_change(case, path, label):
                return f"{show(effect.text)} ({label})"
    return None


def _may_change(case: Case, path: str, label: str) -> bool:
    """The workspace is the user's own, shared trees are installed into, credentials may be closed to others."""
    if label == WORKSPACE:
        return True
    if label == CREDENTIALS:
        return (
            any(
                re.fullmatch(r"0?[0-7]00|go[-=][rwxX]*|u[+=][rwxX]+(?:,go[-=][rwxX]*)?", word)
                for word in case.arguments
            )
            or case.program == "chown"
        )
    return path.strip("/") in SHARED_TREES


def opens_or_locks(case: Case) -> str | None:
    """A mode that locks everyone out of a system folder, or lets everyone write to it."""
    if case.program != "chmod":
        return None
    mode = next(
        (word for word in case.arguments if re.fullmatch(r"[0-7]{1,5}|[ugoa]*[-+=][rwxXst]*(?:,.*)?", word)), ""
    )
    for effect in case.effects:
        for path in effect.paths:
            if path in _SENSITIVE and _reaches_others(mode, path):
                return f"chmod {mode} {show(effect.text)}"
            if _breaks(mode) and case.places.find_wiped(path) and not case.places.is_own(path):
                return f"chmod {mode} {show(effect.text)}"
    return None


def _others(mode: str) -> int:
    return int(mode[-1]) if mode.isdigit() else 0


def _reaches_others(mode: str, path: str) -> bool:
    if re.search(r"(?:^|,)[ugoa]*[oa][ugoa]*[+=][rwx]*w|^\+[rwx]*w", mode):
        return True
    return bool(_others(mode) & 2) or (
        path in _HIDDEN_FROM_OTHERS and (_others(mode) > 0 or bool(re.search(r"[oa][+=]\w|^\+r", mode)))
    )


def _breaks(mode: str) -> bool:
    plain = mode.isdigit()
    return (
        plain and (not mode.strip("0") or bool(_others(mode) & 2 and not (len(mode) == 4 and mode[0] == "1")))
    ) or bool(re.fullmatch(r"(?:a|ugo)?-[rwx]*x[rwx]*|[ugoa]*[oa][ugoa]*[+=][rwx]*w[rwx]*|a=", mode))


def sets_user_id(case: Case) -> str | None:
    """Setuid, or capabilities as good as root, on a tool of the system or a copy of one."""
    if case.program == "setcap":
        return case.words if _CAPABILITIES.search(case.words) else None
    if case.program not in ("chmod", "install"):
        return None
    mode = next(
        (
            word
            for word in case.arguments
            if re.fullmatch(r"0?[4-7][0-7]{3}|[ugoa]*\+[rwxXt]*s[rwxXt]*|u=[rwx]*s[rwx]*", word)
        ),
        None,
    )
    if mode is None or mode.startswith("g") or re.fullmatch(r"0?[1-3]\d{3}", mode):
        return None
    for effect in case.effects:
        twins = [twin for path in effect.paths for twin in (path, case.invocation.scene.twins.get(path, path))]
        if effect.kind in ("mode", "mode tree", "write") and any(_BINARIES.holding(path) is not None for path in twins):
            return f"{mode} {show(effect.text)}"
    return None
