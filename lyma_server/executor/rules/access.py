"""pipe-exec, persistence, revshell, secrets, self and history: who may read, enter and cover tracks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from lyma_server.executor.languages import UNSEEN_PROGRAM
from lyma_server.executor.languages.python_calls import REVERSE_SHELL
from lyma_server.executor.marks import CREDENTIAL, DECODED, ENVIRONMENT, NETWORK, OURSELVES, STAR, show
from lyma_server.executor.paths import covers, takes_everything
from lyma_server.executor.redirects import NETWORK_FILES
from lyma_server.executor.rules.base import Case, asks_for_help
from lyma_server.executor.tools import SENDERS, is_shell
from lyma_server.executor.zones import ZoneTree, zone_of

if TYPE_CHECKING:
    from lyma_server.executor.effects import Kind

WRITES: tuple[Kind, ...] = ("write", "append")
CHANGES: tuple[Kind, ...] = (*WRITES, "remove", "remove tree", "move", "mode", "mode tree", "create", "fill")


def runs_unseen_text(case: Case) -> str | None:
    """Text that nobody has read reaches an interpreter."""
    argv = case.invocation.argv
    if argv and (NETWORK in argv[0] or DECODED in argv[0]):
        return "program text from the network" if NETWORK in argv[0] else "program text out of a decoder"
    if case.program == UNSEEN_PROGRAM:
        return case.invocation.shown
    if case.program in ("crontab", "at", "batch", "make") and any(
        NETWORK in text or DECODED in text for text in case.invocation.stdin
    ):
        return case.invocation.shown
    return None


_ACCOUNT_FILES = ("/etc/passwd", "/etc/shadow", "/etc/gshadow", "/etc/group", "/etc/sudoers", "/etc/ld.so.preload", "/etc/crontab",
                  "/etc/passwd-", "/etc/shadow-", "/etc/rc.local", "/etc/anacrontab", "/etc/doas.conf")  # fmt: skip
_ACCOUNT_FOLDERS = ZoneTree(
    zone_of(path)
    for path in ("/etc/sudoers.d", "/etc/cron.d", "/etc/cron.hourly", "/etc/cron.daily", "/etc/cron.weekly", "/etc/cron.monthly",
                 "/var/spool/cron", "/etc/pam.d", "/etc/update-motd.d")
)  # fmt: skip


def opens_door(case: Case) -> str | None:
    """Keys, accounts, sudo rules, preloaded code and system schedules."""
    for effect in case.effects:
        if effect.kind == "fill" and any(_lets_in(case, path) for path in effect.paths):
            return show(effect.text)
        if effect.kind not in WRITES:
            continue
        for path in effect.paths:
            folder = _ACCOUNT_FOLDERS.holding(path) is not None
            if (
                folder
                or path in _ACCOUNT_FILES
                or case.places.in_homes(path, ".ssh/authorized_keys", ".ssh/authorized_keys2", ".ssh/rc")
            ):
                return show(effect.text)
    return None


def _lets_in(case: Case, path: str) -> bool:
    """Whether files of unknown names in a folder may say who may log in, or what runs by itself."""
    return _ACCOUNT_FOLDERS.holding(path) is not None or case.places.in_homes(
        f"{path.rstrip('/')}/authorized_keys", ".ssh/authorized_keys"
    )


ACCOUNT_COMMANDS: dict[str, str] = {
    "useradd": r"(?:-\w*u|--uid)[ =]?0\b|(?:^|\s)-\w*o\b|--non-unique|-G\s*\S*\b(?:sudo|wheel|root|admin)\b", "adduser": r"--uid[ =]0\b|\s(?:sudo|wheel|root|admin)$",
    "usermod": r"(?:-\w*u|--uid)[ =]?0\b|-\w*G\s*\S*\b(?:sudo|wheel|root|admin)\b|--groups[ =]\S*\b(?:sudo|wheel|root|admin)\b",
    "gpasswd": r"-a\s+\S+\s+(?:sudo|wheel|root|admin)\b", "chpasswd": r"", "newusers": r"", "passwd": r"(?:^|\s)(?:root|-d|--delete|--stdin)\b",
    "pw": r"useradd.*-u\s*0", "dseditgroup": r"-a\s.*admin", "visudo": r"^(?!.*(?:-c|--check))",
}  # fmt: skip


def changes_accounts(case: Case) -> str | None:
    """New users with the rights of root, and passwords set by a program."""
    pattern = ACCOUNT_COMMANDS.get(case.program)
    if pattern is None or asks_for_help(case) or (case.program == "passwd" and re.search(r"(?:^|\s)-S\b", case.words)):
        return None
    return case.invocation.shown if re.search(pattern, case.words) else None


_NETCATS = frozenset({"nc", "ncat", "netcat", "nc.traditional", "nc.openbsd", "cryptcat"})
_CARRIERS = _NETCATS | {"socat", "telnet", "openssl"}


def opens_shell(case: Case) -> str | None:
    """A shell whose input or output is another machine."""
    invocation = case.invocation
    if case.program == REVERSE_SHELL or invocation.argv[:1] == (REVERSE_SHELL,):
        return "a shell on a network socket"
    if case.program in _NETCATS and any(
        re.match(r"^-[a-zA-Z]*[ec]$|^--(?:exec|sh-exec|lua-exec)", word) for word in case.arguments
    ):
        return invocation.shown
    if case.program == "socat" and re.search(r"(?i)\b(?:exec|system|shell):", case.words):
        return invocation.shown
    if not is_shell(case.program):
        return None
    networked = any(redirection.target.startswith(NETWORK_FILES) for redirection in invocation.redirections)
    carried = not _CARRIERS.isdisjoint(invocation.feeds)
    bare = not any(not word.startswith("-") for word in case.arguments)
    piped = (carried and (invocation.piped or bare)) or (invocation.piped and "-i" in case.arguments)
    return invocation.shown if networked or piped else None


_SYSTEM_SECRETS = re.compile(
    r"^/etc/(?:g?shadow-?|ssh/ssh_host_\w+_key|security/opasswd|krb5\.keytab|ssl/private(?:/.*)?|wireguard/.*\.conf)$"
    r"|^/proc/(?!self/environ$)(?!thread-self/environ$)[^/]+/(?:task/[^/]+/)?(?:environ|mem)$|^/proc/kcore$|^/dev/k?mem$|^/var/lib/(?:sss/secrets|secrets)"
)
_PUBLIC = re.compile(r"\.pub$|known_hosts|/config$|authorized_keys|/environment$|\.old$|allowed_signers")
_KEY_FOLDERS = (".ssh", ".gnupg/private-keys-v1.d", ".gnupg/secring.gpg")
_TRACERS = frozenset({"gdb", "lldb", "strace", "ltrace", "perf", "bpftrace", "reptyr", "pyrasite", "py-spy"})


_SECRET_COMMANDS = {
    **dict.fromkeys(("gpg", "gpg2"), r"--export-secret-(?:sub)?keys"), "gcore": "", "gdb": r"\b(?:dump\s|generate-core-file|gcore)",
    "getent": r"^(?:-\S+\s+)*g?shadow\b", "ps": r"^[a-z]*e[a-z]*(?:\s|$)",
}  # fmt: skip
"""Programs that show secrets without naming a file, with the arguments that make them do it."""

SHOWING = _TRACERS.union(_SECRET_COMMANDS)


def _is_secret(case: Case, path: str) -> bool:
    if case.places.is_lyma(path) or _SYSTEM_SECRETS.match(path.replace(STAR, "x")):
        return True
    if not case.places.in_homes(path, *_KEY_FOLDERS):
        return False
    if not case.places.in_homes(path, ".ssh"):
        return True
    name = path.rpartition("/")[2]
    return not _PUBLIC.search(path) or any(covers(name, key) for key in ("id_rsa", "id_ed25519"))


def reads_secret(case: Case) -> str | None:
    """Keys of Lyma or of a person, password hashes, another process's environment or memory."""
    for effect in case.effects:
        if effect.kind in ("read", "move") and any(_is_secret(case, path) for path in effect.paths):
            return show(effect.text)
    pattern = _SECRET_COMMANDS.get(case.program)
    if pattern is not None and re.search(pattern, case.words):
        return case.invocation.shown
    traces = case.program in _TRACERS and any(OURSELVES in word for word in case.arguments)
    return case.invocation.shown if traces else None


def sends_secret(case: Case) -> str | None:
    """The environment, or files of credentials, handed to a program that talks to the network."""
    if case.program not in SENDERS or (case.program == "openssl" and "s_client" not in case.arguments):
        return None
    texts = (*case.arguments, *case.invocation.stdin)
    if any(ENVIRONMENT in text for text in texts):
        return "every environment variable"
    if any(CREDENTIAL in text for text in texts):
        return "a file of credentials"
    written = case.invocation.scene.files
    for effect in case.effects:
        if effect.kind != "read":
            continue
        if any(map(case.places.holds_credentials, effect.paths)):
            return show(effect.text)
        if "/proc/self/environ" in effect.paths or any(
            ENVIRONMENT in text for path in effect.paths for text in written.get(path, ())
        ):
            return "every environment variable"
    return None


_OWN_COMMANDS = re.compile(r"^(?:approve|setup|keys\s+(?:add|remove)|config\s+set|approvals?|revoke|undo)\b")
_OWN_PACKAGE = re.compile(r"/(?:site|dist)-packages/lyma(?:_server|-[\d.]+|\.|/|$)")
_PACKAGE = ZoneTree([zone_of(str(Path(__file__).resolve().parents[2]))])
INSTALLERS = frozenset({"pip", "pip3", "pipx", "uv", "conda", "apt", "apt-get", "brew"})


def approves_itself(case: Case) -> str | None:
    """Lyma's own commands that a person alone may give."""
    if not case.program.startswith(("lyma", "python")) or "--help" in case.arguments:
        return None
    name, words = case.program, case.words
    if name in ("python", "python3") or re.fullmatch(r"python3?\.\d+", name):
        match = re.match(r"^(?:-\w+\s+)*-m\s*lyma(?:_server)?\s+(.*)", words)
        name, words = ("lyma", match.group(1)) if match else (name, words)
    if name != "lyma" or words.startswith("approve --list"):
        return None
    return case.invocation.shown if _OWN_COMMANDS.match(words) else None


def changes_lyma(case: Case) -> str | None:
    """Writes to Lyma's home or to its installed code, and taking it away."""
    for effect in case.effects:
        if effect.kind in CHANGES and any(
            case.places.is_lyma(path) or _OWN_PACKAGE.search(path) or _PACKAGE.holding(path) is not None
            for path in effect.paths
        ):
            return show(effect.text)
    removes = case.program in INSTALLERS and re.search(r"\b(?:uninstall|remove|purge)\b.*\blyma\b(?!-)", case.words)
    return case.invocation.shown if removes else None


KILLERS_BY_NAME = frozenset({"killall", "pkill", "skill", "systemctl", "taskkill"})
"""Programs that end another by its name."""


def kills_lyma(case: Case) -> str | None:
    """A signal to Lyma by its name."""
    if case.program not in KILLERS_BY_NAME:
        return None
    if case.program == "systemctl" and not re.search(r"\b(?:stop|kill|disable|mask)\b", case.words):
        return None
    return case.invocation.shown if re.search(r"(?i)\blyma\b|lyma[-_]server", case.words) else None


_HISTORY_FILES = (".bash_history", ".zsh_history", ".zhistory", ".local/share/fish/fish_history", ".python_history", ".mysql_history",
                  ".psql_history", ".sqlite_history", ".lesshst", ".node_repl_history", ".history", ".sh_history", ".ash_history")  # fmt: skip
_SYSTEM_LOGS = re.compile(
    r"^/var/log(?:/(?:syslog|messages|auth\.log|secure|wtmp|btmp|utmp|lastlog|faillog|kern\.log|daemon\.log|maillog|mail\.log|cron(?:\.log)?|dmesg"
    r"|boot\.log|dpkg\.log|apt|audit|journal|sudo\.log|ufw\.log|debug|user\.log|private)(?:[./].*)?)?$|^/run/(?:utmp|log)(?:/.*)?$"
)


def covers_tracks(case: Case) -> str | None:
    """Shell history and the logs of the system."""
    for effect in case.effects:
        if effect.kind not in ("write", "remove", "remove tree", "move"):
            continue
        for path in effect.paths:
            folder, _, last = path.rpartition("/")
            if folder == "/var/log" and (
                takes_everything(last)
                or covers(last, "syslog")
                or covers(last, "auth.log")
                or last in ("*.log", STAR + ".log")
            ):
                return show(effect.text)
            if _SYSTEM_LOGS.match(path) or case.places.in_homes(path, *_HISTORY_FILES):
                return show(effect.text)
    return None


TRACK_COMMANDS = {"journalctl": r"--vacuum", "history": r"(?:^|\s)-\w*[cw]", "wevtutil": r"(?i)^(?:cl|clear-log)", "dmesg": r"(?:^|\s)(?:-C|--clear)\b",
                   "Clear-EventLog": r"", "logsave": r"^/dev/null"}  # fmt: skip


def clears_records(case: Case) -> str | None:
    """Commands that empty the journal or the history."""
    pattern = TRACK_COMMANDS.get(case.program)
    return case.invocation.shown if pattern is not None and re.search(pattern, case.words) else None
