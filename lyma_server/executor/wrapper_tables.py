"""Programs that start other programs, as data: where the inner command stands in their arguments."""

from __future__ import annotations

import re

from attrs import frozen


@frozen
class Wrapper:
    """The inner command follows the options (`values` are those that take one), then `skip` operands, then assignments
    where `assigns`. With `marker` it follows the word `--` wherever that stands.
    """

    values: tuple[str, ...] = ()
    skip: int = 0
    assigns: bool = False
    marker: bool = False


_PLAIN = Wrapper()
_ONE = Wrapper(skip=1)

WRAPPERS: dict[str, Wrapper] = {
    "sudo": Wrapper(("-u", "-g", "-h", "-p", "-C", "-D", "-R", "-r", "-t", "-T", "-U", "--user", "--group", "--host", "--prompt",
                     "--chdir", "--chroot"), assigns=True),
    "doas": Wrapper(("-u", "-C"), assigns=True), "pkexec": Wrapper(("--user",)), "run0": Wrapper(("-u", "--user", "-D")),
    "nohup": _PLAIN, "setsid": _PLAIN, "time": Wrapper(("-f", "-o", "--format", "--output")), "gtime": Wrapper(("-f", "-o")),
    "timeout": Wrapper(("-s", "-k", "--signal", "--kill-after"), skip=1), "gtimeout": Wrapper(("-s", "-k"), skip=1),
    "nice": Wrapper(("-n", "--adjustment")), "ionice": Wrapper(("-c", "-n", "-p", "-P", "-u", "--class", "--classdata")),
    "chrt": Wrapper(("-T", "-P", "-D"), skip=1), "taskset": _ONE, "stdbuf": Wrapper(("-i", "-o", "-e")), "unbuffer": _PLAIN,
    "strace": Wrapper(("-e", "-o", "-p", "-s", "-u", "-E", "-P", "-a", "-b", "-I", "-O", "-S", "-X")),
    "ltrace": Wrapper(("-e", "-o", "-p", "-s", "-u", "-a", "-l", "-n", "-x")), "valgrind": _PLAIN, "catchsegv": _PLAIN,
    "fakeroot": Wrapper(("-l", "-s", "-i", "-b")), "chroot": Wrapper(skip=1), "proot": Wrapper(("-r", "-b", "-w", "-q", "-R", "-S")),
    "unshare": Wrapper(("-S", "-G", "-w", "-R", "--setuid", "--setgid", "--wd", "--root")),
    "nsenter": Wrapper(("-t", "-S", "-G", "--target", "--setuid", "--setgid")), "setpriv": _PLAIN, "firejail": _PLAIN,
    "systemd-run": Wrapper(("-p", "-u", "-E", "-M", "-H", "--unit", "--property", "--uid", "--gid", "--setenv", "--slice",
                            "--on-active", "--on-calendar", "--on-boot", "--description")),
    "machinectl": Wrapper(skip=2), "systemd-inhibit": _PLAIN, "caffeinate": Wrapper(("-t", "-w")), "setarch": _ONE, "linux32": _PLAIN, "linux64": _PLAIN,
    "prlimit": _PLAIN, "cgexec": Wrapper(("-g",)), "numactl": Wrapper(("-N", "-m", "-C", "-i")), "dbus-run-session": _PLAIN,
    "dbus-launch": _PLAIN, "xvfb-run": Wrapper(("-n", "-s", "-e", "-f", "-p", "-w")), "busybox": _PLAIN, "toybox": _PLAIN,
    "ssh-agent": _PLAIN, "envdir": _ONE, "cross-env": Wrapper(assigns=True), "env-cmd": Wrapper(("-f",)), "tini": _PLAIN,
    "dumb-init": _PLAIN, "gosu": _ONE, "su-exec": _ONE, "s6-setuidgid": _ONE, "setuidgid": _ONE, "softlimit": _PLAIN,
    "flock": Wrapper(("-w", "-E", "--timeout", "--wait"), skip=1), "chronic": _PLAIN, "ifne": _PLAIN, "lockrun": Wrapper(marker=True),
    "entr": _PLAIN, "npx": Wrapper(("-p", "--package", "-w")), "bunx": _PLAIN, "pnpx": _PLAIN, "uvx": Wrapper(("--from", "--with", "-p")),
    "dotenv": Wrapper(("-e", "-f", "-v", "-p", "-c")), "flatpak-spawn": _PLAIN, "wsl": Wrapper(("-d", "-u")), "perf": _ONE,
    "hyperfine": _PLAIN, "rlwrap": _PLAIN, "faketime": _ONE, "torsocks": _PLAIN, "proxychains": _PLAIN, "proxychains4": _PLAIN,
    "cpulimit": Wrapper(("-l",)), "choom": Wrapper(("-n",)), "uclampset": _PLAIN, "scriptlive": _PLAIN, "trickle": _PLAIN,
    "jexec": _ONE, "ld.so": _PLAIN, "coreutils": _PLAIN, "start-stop-daemon": Wrapper(marker=True), "bwrap": _PLAIN, "retry": _PLAIN,
    "run-parts": _PLAIN, "aws-vault": Wrapper(marker=True), "op": Wrapper(marker=True), "doppler": Wrapper(marker=True),
    "chamber": Wrapper(marker=True), "kubectl": Wrapper(marker=True), "lxc": Wrapper(marker=True), "incus": Wrapper(marker=True),
    "oc": Wrapper(marker=True), "distrobox": Wrapper(marker=True), "toolbox": _ONE, "guix": Wrapper(marker=True), "gcloud": Wrapper(marker=True),
}  # fmt: skip

SUBCOMMANDS: dict[str, dict[str, Wrapper]] = {
    "poetry": {"run": _PLAIN}, "pipenv": {"run": _PLAIN}, "pdm": {"run": _PLAIN}, "rye": {"run": _PLAIN}, "hatch": {"run": _PLAIN},
    "uv": {"run": Wrapper(("--with", "--python", "-p", "--package", "--extra", "--group", "--env-file", "--directory"))},
    "conda": {"run": Wrapper(("-n", "-p", "--cwd", "--name", "--prefix"))}, "mamba": {"run": Wrapper(("-n", "-p"))},
    "micromamba": {"run": Wrapper(("-n", "-p"))}, "bundle": {"exec": _PLAIN}, "rbenv": {"exec": _PLAIN}, "pyenv": {"exec": _PLAIN},
    "nodenv": {"exec": _PLAIN}, "asdf": {"exec": _PLAIN}, "mise": {"exec": Wrapper(marker=True), "x": Wrapper(marker=True)},
    "direnv": {"exec": _ONE}, "npm": {"exec": Wrapper(("-p", "--package")), "x": _PLAIN}, "pnpm": {"exec": _PLAIN, "dlx": _PLAIN},
    "yarn": {"exec": _PLAIN, "dlx": _PLAIN}, "bun": {"x": _PLAIN}, "opam": {"exec": Wrapper(marker=True)}, "stack": {"exec": Wrapper(marker=True)},
    "cabal": {"exec": Wrapper(marker=True)}, "cargo": {"exec": _PLAIN}, "dotenvx": {"run": Wrapper(marker=True)}, "heroku": {"run": Wrapper(("-a",))},
    "git": {"bisect": Wrapper(skip=1)}, "rustup": {"run": _ONE}, "sops": {"exec-env": _ONE}, "nix": {"run": Wrapper(marker=True)},
}  # fmt: skip
"""The inner command follows the subcommand."""


@frozen
class TextOption:
    """The value of one of `options` is shell text; with `pattern` only what its first group matches. An empty option means
    every operand, `*` all operands joined by spaces.
    """

    options: tuple[str, ...]
    pattern: str = ""

    def text(self, value: str) -> str | None:
        if not self.pattern:
            return value
        match = re.search(self.pattern, value, re.DOTALL)
        return match.group(1) if match else None


_VI = r"^\s*:?(?:silent\s*)?!+(.*)"
_GIT_SETTING = (
    r"^(?:(?:alias\.[^=]+|credential\.[^=]*helper)=\s*!|(?:core\.(?:pager|editor|sshcommand|fsmonitor|askpass)|diff\.external"
    r"|sequence\.editor|pager\.[^=]+|filter\.[^=]+|diff\.[^=]+\.(?:command|textconv)|merge\.[^=]+\.driver|gpg\.program)=)(.*)"
)

TEXT_OPTIONS: dict[str, tuple[TextOption, ...]] = {
    "su": (TextOption(("-c", "--command", "--session-command")),), "runuser": (TextOption(("-c", "--command")),),
    "sg": (TextOption(("-c", "")),), "newgrp": (TextOption(("-c",)),), "script": (TextOption(("-c", "--command")),),
    "flock": (TextOption(("-c", "--command")),), "npx": (TextOption(("-c", "--call")),), "npm": (TextOption(("-c", "--call")), TextOption(("",), r"^scripts\.[^=]+=(.*)")),
    "nix-shell": (TextOption(("--run", "--command")),), "xterm": (TextOption(("-e",)),), "vagrant": (TextOption(("-c", "--command")),),
    "watch": (TextOption(("*",)),), "capsh": (TextOption(("-c",)),), "concurrently": (TextOption(("",)),), "wireit": (TextOption(("",)),),
    "hyperfine": (TextOption(("", "--prepare", "-p", "--setup", "-s", "--cleanup", "-c")),), "nodemon": (TextOption(("--exec", "-x")),),
    "watchexec": (TextOption(("*",)),), "cargo-watch": (TextOption(("-s",)),), "entr": (TextOption(("-s",) ),),
    "tar": (TextOption(("--to-command", "-I", "--use-compress-program", "--info-script", "-F", "--new-volume-script", "--rsh-command")),
            TextOption(("--checkpoint-action",), r"^exec=(.*)")),
    "rsync": (TextOption(("-e", "--rsh", "--rsync-path")),), "sort": (TextOption(("--compress-program",)),),
    "ssh": (TextOption(("-o",), r"(?i)^\s*(?:proxycommand|localcommand|knownhostscommand)[= ](.*)"),),
    "scp": (TextOption(("-o",), r"(?i)^\s*proxycommand[= ](.*)"), TextOption(("-S",))),
    "sftp": (TextOption(("-o",), r"(?i)^\s*proxycommand[= ](.*)"), TextOption(("-S",))),
    "split": (TextOption(("--filter",)),), "zip": (TextOption(("-TT", "--unzip-command")),), "man": (TextOption(("-P", "--pager")),),
    "git": (TextOption(("-c", "--config-env"), r"(?i)" + _GIT_SETTING), TextOption(("-x", "--exec", "--extcmd", "--upload-pack", "-u",
            "--tree-filter", "--index-filter", "--msg-filter", "--env-filter", "--commit-filter", "--parent-filter", "--setup"))),
    "psql": (TextOption(("-c", "--command"), r"\\!(.*)"),), "mysql": (TextOption(("-e", "--execute"), r"(?:\\!|system\s)(.*)"),),
    "sqlite3": (TextOption(("", "-cmd"), r"^\s*\.(?:shell|system)\s(.*)"),), "mariadb": (TextOption(("-e",), r"(?:\\!|system\s)(.*)"),),
    "vim": (TextOption(("-c", "--cmd"), _VI), TextOption(("",), r"^\+" + _VI[1:])), "vi": (TextOption(("-c",), _VI),),
    **dict.fromkeys(("view", "vimdiff", "gvim", "rvim", "rview", "vimx", "nvi"), (TextOption(("-c", "--cmd"), _VI), TextOption(("",), r"^\+" + _VI[1:]))),
    "nvim": (TextOption(("-c", "--cmd"), _VI), TextOption(("",), r"^\+" + _VI[1:])), "ex": (TextOption(("-c",), _VI), TextOption(("",), r"^\+" + _VI[1:])),
    "gdb": (TextOption(("-ex", "-eval-command", "--eval-command", "-iex"), r"^\s*(?:shell|!|make)\s*(.*)"),),
    "lldb": (TextOption(("-o", "--one-line"), r"^\s*(?:platform\s+)?shell\s(.*)"),), "less": (TextOption(("",), r"^\+!(.*)"),),
    "make": (TextOption(("--eval",), r"\$\(shell\s(.*)\)"), TextOption(("",), r"^(?:SHELL|\.SHELLFLAGS)=(.*)")),
    "tmux": (TextOption(("",), r"(.*\s.*)"),), "screen": (TextOption(("-X",), r"(.*)"),), "tcpdump": (TextOption(("-z",)),),
    "pv": (), "fzf": (TextOption(("--preview", "--bind"), r"(?:execute(?:-silent)?\()?(.*?)\)?$"),), "find": (),
    "mutt": (TextOption(("-e",)),), "crontab": (), "logrotate": (), "wget": (TextOption(("--use-askpass",)),), "nsenter": (),
    "gcloud": (TextOption(("--command",)),), "aws": (TextOption(("--parameters",), r"commands?=\[?\s*[\"']?(.*?)[\"']?\s*\]?$"),), "tmate": (TextOption(("-c",)),),
    "restic": (TextOption(("--password-command",)),), "dc": (TextOption(("-e", "--expression"), r"!(.*)"),), "borg": (TextOption(("--rsh",)),), "rpm": (TextOption(("--eval", "-E"), r"%\((.*)\)"),), "gem": (TextOption(("-e", "--editor")),),
    "az": (TextOption(("--scripts", "--script-text")),), "mail": (TextOption(("--exec",), r"^!?(.*)"),), "openvpn": (TextOption(("--up", "--down", "--route-up")),),
    "fly": (TextOption(("-C", "--command")),), "flyctl": (TextOption(("-C", "--command")),), "doppler": (TextOption(("--command",)),),
    "xdotool": (TextOption(("*",), r"^type\s+(.*)"),), "ip": (), "cpan": (), "dotenv": (TextOption(("-c",)),), "just": (TextOption(("-c", "--command")),), "pssh": (TextOption(("*",)),),
    "ansible": (TextOption(("-a", "--args")),), "salt": (TextOption(("*",)),), "pdsh": (TextOption(("*",)),), "wezterm": (),
}  # fmt: skip

TEXT_VALUES: dict[str, tuple[str, ...]] = {
    "ssh": ("-i", "-p", "-l", "-F", "-J", "-L", "-R", "-D", "-b", "-c", "-E", "-e", "-I", "-m", "-O", "-Q", "-S", "-W", "-w"),
    "watch": ("-n", "--interval", "-q"), "tmux": ("-s", "-n", "-t", "-c", "-L", "-S", "-f"), "script": ("-o", "-I", "-O", "-B", "-T"),
    "git": ("-C", "-m", "-b"), "tar": ("-f", "-C", "-T", "-X", "--file", "--directory"), "psql": ("-h", "-U", "-d", "-p", "-f"),
    "watchexec": ("-w", "-e", "-i", "--watch", "--exts"), "mysql": ("-u", "-h", "-P", "-D"), "make": ("-f", "-C", "-j", "-I", "-o", "-W"),
    "ansible": ("-m", "-i", "-u"), "pdsh": ("-w",), "pssh": ("-h", "-H", "-l"), "hyperfine": ("-n", "-r", "-w", "-m", "-M"),
    "su": ("-s", "-g", "-G", "-w"), "runuser": ("-u", "-s", "-g", "-G", "-w"), "zip": ("-b", "-n", "-t", "-x"),
    "concurrently": ("-n", "-c", "--names", "-k"), "rsync": ("--exclude", "--include", "--files-from"),
}  # fmt: skip
"""Other options of those programs that take a value, so that it is not read as an operand."""

SINGLE_DASH = frozenset({"gdb", "zip", "sqlite3", "lldb"})

COMMAND_VARIABLES = frozenset(
    {"PAGER", "MANPAGER", "GIT_PAGER", "EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_SSH_COMMAND", "GIT_SSH", "GIT_ASKPASS",
     "SSH_ASKPASS", "SUDO_ASKPASS", "LESSOPEN", "LESSCLOSE", "PROMPT_COMMAND", "PS0", "PS4", "BROWSER", "RSYNC_RSH", "GIT_EXTERNAL_DIFF",
     "GIT_PROXY_COMMAND", "FZF_DEFAULT_COMMAND", "SYSTEMD_PAGER", "AWS_PAGER", "TAR_OPTIONS", "DELTA_PAGER", "BAT_PAGER", "SUDO_EDITOR"}
)  # fmt: skip
"""Variables whose value some program runs as a command."""
