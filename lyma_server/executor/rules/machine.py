"""device, system and forkbomb: disks, power, processes, firewall, audit."""

from __future__ import annotations

import re

from lyma_server.executor.forks import FORK_BOMB
from lyma_server.executor.marks import OURSELVES, STAR, has_pattern, show
from lyma_server.executor.options import read_options
from lyma_server.executor.paths import covers
from lyma_server.executor.rules.base import Case, asks_for_help
from lyma_server.executor.tools import DATA_ONLY, DEVICE_TOOLS
from lyma_server.executor.wrapper_tables import WRAPPERS

_DISK = re.compile(
    r"^/dev/(?:r?(?:sd|hd|vd|xvd)[a-z]+\d*|nvme\d.*|mmcblk\d.*|r?disk\d.*|mapper/(?!control).+|disk/.+|dm-\d+|md\d+.*|nbd\d+.*|zd\d+.*|sr\d+|"
    r"mem|kmem|port|pmem\d.*|root|block/.+|vg[\w-]*/.+|[\w-]*vg[\w-]*/.+|mtd\d.*)$"
)
_DISK_NAMES = ("sda", "sda1", "nvme0n1", "vda", "disk0")


def _is_disk(path: str) -> bool:
    if has_pattern(path) and path.startswith("/dev/"):
        return path.count("/") == 2 and any(covers(path[5:], name) for name in _DISK_NAMES)
    return _DISK.match(path) is not None


_DISK_READERS = DATA_ONLY | DEVICE_TOOLS | frozenset(
    {"mount", "umount", "lsblk", "blkid", "smartctl", "udisksctl", "udevadm", "blockdev", "fsck", "e2fsck", "dumpe2fs", "e2label", "xfs_info",
     "growpart", "resize2fs", "xfs_growfs", "swapon", "swapoff", "hexdump", "od", "xxd", "pv", "eject", "lvs", "pvs", "vgs", "lvdisplay", "pvdisplay",
     "iostat", "fio", "ntfsfix", "fatlabel", "kpartx", "docker", "podman", "qemu-system-x86_64", "smartd", "sg_inq", "lsof", "fuser", "grep"}
)  # fmt: skip
"""Programs that look at the disks they name, or have a row of their own."""


def writes_device(case: Case) -> str | None:
    """Something is written to a disk, or a disk is removed, moved or shredded."""
    for effect in case.effects:
        if effect.kind in ("write", "append", "remove", "move") and any(map(_is_disk, effect.paths)):
            return show(effect.text)
    return _copied_to_disk(case)


def _copied_to_disk(case: Case) -> str | None:
    """A program that is not known to look only, given something and then a disk: it copies there."""
    if len(case.arguments) < 2 or case.program in _DISK_READERS or case.program in WRAPPERS:
        return None
    operands = [word for word in case.arguments if not word.startswith("-")]
    if len(operands) < 2 or "=" in operands[-1]:
        return None
    return case.invocation.shown if any(map(_is_disk, case.invocation.scene.places(operands[-1]))) else None


DEVICE_COMMANDS: dict[str, tuple[str, str]] = {
    "wipefs": (r"(?:^|\s)(?:-\w*[ao]|--all|--offset)", ""),
    "sgdisk": (r"/dev/", r"^(?:-\w*[pvFEDLi]|--print|--info\S*|--verify|-b\s*\S+|--backup\S*)(?:\s+\S+)*$(?<!x)"),
    "gdisk": (r"/dev/", r"^-l\s"), "sfdisk": (r"/dev/", r"(?:^|\s)(?:-l|-d|-J|-s|-V|-F|--list|--dump|--json|--verify|--show-\S+|-T)(?:\s|$)"),
    "fdisk": (r"/dev/", r"(?:^|\s)(?:-\w*l|-s|--list\S*|-x)(?:\s|$)"), "cfdisk": (r"/dev/", ""),
    "parted": (r"\b(?:mklabel|mktable|mkpart|rm|resizepart|rescue|set|disk_set|mkfs|name|toggle)\b", ""), "blkdiscard": (r"", ""),
    "hdparm": (r"--(?:security-\S+|trim-sector\S*|make-bad-sector|write-sector|repair-sector|fwdownload|dco-restore|Istdout-none)|(?:^|\s)-Y\b", ""),
    "nvme": (r"^(?:format|sanitize|write\S*|delete-ns|dsm|fw-\S+|security-send|zns)\b", ""),
    "zpool": (r"^(?:destroy|labelclear|create|detach|remove|split|replace|initialize|trim)\b", ""), "zfs": (r"^(?:destroy|rollback)\b", ""),
    "lvremove": ("", ""), "vgremove": ("", ""), "pvremove": ("", ""), "lvreduce": ("", ""), "vgreduce": ("", ""),
    "lvm": (r"^(?:lvremove|vgremove|pvremove|lvreduce)\b", ""),
    "cryptsetup": (r"\b(?:luksFormat|luksErase|erase|luksKillSlot|luksRemoveKey|reencrypt|luksHeaderRestore|convert|plainFormat)\b", ""),
    "mdadm": (r"--(?:zero-superblock|stop|remove|fail|create)|(?:^|\s)-[SC]\b", ""), "badblocks": (r"(?:^|\s)-\w*[wn]", ""),
    "diskutil": (r"(?i)^(?:erase\w*|partitionDisk|zeroDisk|randomDisk|secureErase|reformat|splitPartition|mergePartitions|apfs\s+(?:delete|erase)\w*|cs\s+delete)", ""),
    "format": (r"(?i)^[a-z]:", ""), "diskpart": ("", ""), "dmsetup": (r"^(?:remove|remove_all|wipe_table|clear)\b", ""),
    "btrfs": (r"^(?:device\s+(?:delete|remove)|check\s+--repair|subvolume\s+delete\s+/(?:\s|$))", ""), "tune2fs": (r"-O\s*\^|-U\s+clear", ""),
    "sg_format": ("", ""), "sg_sanitize": ("", ""), "flashrom": (r"(?:^|\s)-\w*[wE]|--(?:write|erase)", ""), "flash_erase": ("", ""),
    "flash_eraseall": ("", ""), "mtd_debug": (r"^erase", ""), "vgcfgrestore": ("", ""), "partx": (r"(?:^|\s)-\w*d|--delete", ""), "delpart": ("", ""),
    "efibootmgr": (r"(?:^|\s)-\w*B|--delete-bootnum", ""), "mkfs": (r"/dev/", ""), "grub-install": (r"/dev/", ""), "pvcreate": (r"/dev/", ""), "vgcreate": (r"/dev/", ""),
    "ntfsclone": (r"(?:^|\s)(?:-\w*[Or]\w*|--overwrite\S*|--restore-image)(?:\s|$)", ""), "xfs_repair": (r"(?:^|\s)-\w*L", ""), "sg_write_same": ("", ""),
    "sg_unmap": ("", ""), "sg_write_buffer": ("", ""), "ddrescue": (r"\s/dev/\S+\s+\S*$(?<=x)", ""),
}  # fmt: skip
"""A program with a pattern of arguments that destroy, and one of arguments that only look."""


def destroys_device(case: Case) -> str | None:
    """A tool for disks, told to erase or to change what they hold."""
    row = DEVICE_COMMANDS.get(case.program)
    if row is None or asks_for_help(case) or not case.arguments:
        return None
    destroys, looks = row
    words = show(case.words)
    if case.program in _FILE_TOOLS and _works_on_file(case):
        return None
    if looks and re.search(looks, words) and not (case.program == "sgdisk" and _changes_table(case)):
        return None
    return case.invocation.shown if re.search(destroys, words) else None


_FILE_TOOLS = frozenset(
    {
        "parted",
        "sgdisk",
        "gdisk",
        "sfdisk",
        "fdisk",
        "cfdisk",
        "wipefs",
        "cryptsetup",
        "badblocks",
        "mkfs",
        "tune2fs",
        "btrfs",
    }
)


def _works_on_file(case: Case) -> bool:
    """Whether the tool is given the image of a disk, not a disk."""
    operands = [word for word in case.arguments if not word.startswith("-")]
    disks = any(word.startswith("/dev/") for place in operands for word in case.invocation.scene.places(place))
    return not disks and any("." in word or "/" in word for word in operands)


def _changes_table(case: Case) -> bool:
    return any(
        re.match(
            r"^(?:-\w*[ZzodntcAuUgGrhmsR]|--(?:zap\S*|clear|delete|new|typecode|randomize\S*|mbrtogpt|load-backup))",
            word,
        )
        for word in case.arguments
    )


_RUNLEVEL = r"^[0-6sSqQuU](?:\s|$)"
_STATE = (
    r"^(?:-\S+\s+)*(?:poweroff|reboot|soft-reboot|halt|kexec|suspend(?:-then-hibernate)?|hibernate|hybrid-sleep|rescue|emergency|exit|default"
    r"|isolate\s+\S+|start\s+(?:poweroff|reboot|halt|rescue|emergency|shutdown)\.target)(?:\s|$)"
)
_CALL = r"\b(?:PowerOff|Reboot|Halt|KExec|Suspend|Hibernate)\b"
POWER_COMMANDS: dict[str, str] = {
    "shutdown": r"^(?!.*(?:^|\s)(?:-c|--show)\b)(?![/-]\?$)", "reboot": "", "halt": "", "poweroff": "", "pm-suspend": "", "pm-hibernate": "",
    "init": _RUNLEVEL, "telinit": _RUNLEVEL, "systemctl": _STATE, "loginctl": _STATE, "kexec": r"(?:^|\s)(?:-e|--exec)\b",
    "rtcwake": r"-m\s*(?:off|disk|mem)", "ipmitool": r"\bpower\s+(?:off|cycle|reset|soft)|\bmc\s+reset", "dbus-send": _CALL, "busctl": _CALL,
    "gdbus": _CALL, "qdbus": _CALL,
}  # fmt: skip
"""Programs that end or restart the machine, with the arguments that make them do it."""


def ends_machine(case: Case) -> str | None:
    """Power off, restart, or leave the running system."""
    pattern = POWER_COMMANDS.get(case.program)
    if pattern is None or asks_for_help(case):
        return None
    return case.invocation.shown if re.search(pattern, case.words) else None


_SWITCH = re.compile(
    r"^/proc/sysrq-trigger$|^/proc/sys/kernel/(?:sysrq|panic|modules_disabled)$|^/sys/power/(?:state|disk)$|^/dev/watchdog\d*$|^/sys/kernel/.*/reboot$"
)
KILLERS = frozenset({"kill", "killall", "killall5", "loginctl", "pkill", "skill", "xkill"})
"""Programs that send signals, or end what belongs to a person."""

_SIGNALS = re.compile(r"^-(?:\d+|[A-Z][A-Z0-9]*|s|n|l|L)$")


def kills_everything(case: Case) -> str | None:
    """A signal to init, or to every process."""
    name, words = case.program, list(case.arguments)
    if name == "killall5" and not asks_for_help(case):
        return case.invocation.shown
    if name == "kill" and not any(word in ("-l", "-L", "--list", "--table") for word in words):
        return _kill_target(case, words)
    if name == "loginctl" and re.match(r"^(?:-\S+\s+)*(?:terminate|kill)-(?:user|session|seat)\b", case.words):
        return case.invocation.shown
    if name in ("pkill", "killall", "skill") and words:
        return _broad_kill(case)
    return None


def _kill_target(case: Case, words: list[str]) -> str | None:
    if words[:1] in (["-s"], ["-n"], ["--signal"], ["-q"]):
        words = words[2:]
    elif (words and _SIGNALS.match(words[0]) and len(words) > 1) or (words and words[0].startswith("--signal=")):
        words = words[1:]
    targets = [word for word in words if word != "--"]
    if case.arguments[:1] == ("-0",) or case.arguments[:2] == ("-s", "0"):
        return None
    everyone = any(word in ("1", "-1", "0x1", "-0x1") or STAR in word for word in targets)
    return case.invocation.shown if everyone else None


def _broad_kill(case: Case) -> str | None:
    options = read_options(
        tuple(word for word in case.arguments if not re.fullmatch(r"-(?:\d+|[A-Z]{3,}\d*)", word)),
        ("-s", "-u", "-U", "-g", "-G", "-t", "-P", "--signal", "--user", "--uid", "--euid", "-y", "-o"),
    )
    targets = options.operands
    if options.has("-u", "-U", "--user", "--uid", "--euid") and not targets:
        return case.invocation.shown
    everything = any(
        target in ("", ".", ".*", "^", "$", ".+") or target in ("systemd", "init", "dbus-daemon", "systemd-logind")
        for target in targets
    )
    return case.invocation.shown if everything or "-1" in options.operands else None


def magic_key(case: Case) -> str | None:
    """The kernel's own switches: emergency keys, sleep, the watchdog."""
    for effect in case.effects:
        if effect.kind in ("write", "append") and any(map(_SWITCH.match, effect.paths)):
            return show(effect.text)
    return None


_GUARDS = r"(?:auditd|apparmor|firewalld|ufw|nftables|iptables|ip6tables|fail2ban|rsyslog|syslog(?:-ng)?|systemd-journald|crowdsec|falcon-sensor|clamav\S*|selinux\S*|osqueryd|wazuh-agent|sysmon|mdatp)"
GUARD_COMMANDS: dict[str, str] = {
    "ufw": r"^(?:--force\s+)?(?:disable|reset)\b|^default\s+allow\s+incoming",
    "iptables": r"(?:^|\s)(?:-F|--flush|-X|--delete-chain)(?:\s|$)|(?:-P|--policy)\s+(?:INPUT|FORWARD)\s+ACCEPT",
    "ip6tables": r"(?:^|\s)(?:-F|--flush|-X|--delete-chain)(?:\s|$)|(?:-P|--policy)\s+(?:INPUT|FORWARD)\s+ACCEPT",
    "nft": r"^(?:-\S+\s+)*(?:flush\s+ruleset|delete\s+table)", "pfctl": r"(?:^|\s)-\w*[dF]", "firewall-cmd": r"--(?:panic-on|set-default-zone=trusted)",
    "systemctl": rf"^(?:-\S+\s+)*(?:stop|disable|mask|kill)\s+(?:-\S+\s+)*(?:\S+\s+)*{_GUARDS}(?:\.\w+)?(?:\s|$)",
    "service": rf"^{_GUARDS}\s+stop", "rc-service": rf"^{_GUARDS}\s+stop", "update-rc.d": rf"^(?:-f\s+)?{_GUARDS}\s+(?:disable|remove)",
    "chkconfig": rf"^{_GUARDS}\s+off", "setenforce": r"(?i)^(?:0|permissive)\b", "auditctl": r"(?:^|\s)(?:-e\s*0|-D)(?:\s|$)",
    "aa-teardown": r"", "aa-disable": r"\S", "aa-complain": r"\S", "netsh": r"(?i)firewall.*(?:off|disable)", "spctl": r"--(?:master|global)-disable",
    "csrutil": r"^disable", "sysctl": r"kernel\.(?:sysrq|panic|modules_disabled)\s*=", "Set-MpPreference": r"(?i)disable",
    "esetcli": r"", "tmutil": r"^(?:disable|delete)", "vssadmin": r"(?i)^delete", "bcdedit": r"\S", "wbadmin": r"(?i)^delete",
}  # fmt: skip


_GUARD_SWITCH = re.compile(
    r"^/sys/fs/selinux/(?:enforce|disable|load)$|^/sys/kernel/security/apparmor/\.(?:remove|replace)$"
)


def lowers_guard(case: Case) -> str | None:
    """Firewall, audit and mandatory access control switched off."""
    for effect in case.effects:
        if effect.kind in ("write", "append") and any(map(_GUARD_SWITCH.match, effect.paths)):
            return show(effect.text)
    pattern = GUARD_COMMANDS.get(case.program)
    if pattern is None or asks_for_help(case):
        return None
    return case.invocation.shown if re.search(pattern, case.words) else None


def drops_crontab(case: Case) -> str | None:
    """The whole crontab removed or replaced by nothing."""
    if case.program != "crontab":
        return None
    options = read_options(case.arguments, ("-u",))
    if options.has("-r") or "/dev/null" in options.operands:
        return case.invocation.shown
    empty = options.operands == ("-",) and not any(text.strip() for text in case.invocation.stdin)
    return case.invocation.shown if empty else None


def is_fork_bomb(case: Case) -> str | None:
    """Something that starts itself, or others, without end."""
    return "a process that starts itself without end" if case.invocation.argv[:1] == (FORK_BOMB,) else None


def kills_lyma_process(case: Case) -> str | None:
    """A signal to a process number that was looked up as Lyma's."""
    kills = case.program in ("kill", "skill", "xkill") and any(OURSELVES in word for word in case.arguments)
    return case.invocation.shown if kills else None
