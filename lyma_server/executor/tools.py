"""Programs by what they are, as data."""

from __future__ import annotations

SHELLS = frozenset(
    {
        "sh",
        "bash",
        "dash",
        "zsh",
        "ksh",
        "ksh93",
        "mksh",
        "ash",
        "fish",
        "yash",
        "csh",
        "tcsh",
        "rbash",
        "posh",
        "pdksh",
        "rc",
        "es",
        "osh",
        "elvish",
        "nu",
        "sash",
    }
)

LANGUAGES = {
    "python": ("-c",), "pypy": ("-c",), "ipython": ("-c",),
    "node": ("-e", "--eval", "-p", "--print", "-pe"), "nodejs": ("-e", "--eval", "-p", "--print"), "bun": ("-e", "--eval"),
    "deno": ("eval",), "perl": ("-e", "-E"), "ruby": ("-e",), "php": ("-r",), "lua": ("-e",), "luajit": ("-e",),
    "tclsh": (), "wish": (), "Rscript": ("-e",), "R": ("-e",), "julia": ("-e", "--eval", "-E"), "osascript": ("-e",),
    "pwsh": ("-c", "-Command", "-command", "-C", "-EncodedCommand"), "powershell": ("-c", "-Command", "-command", "-C"),
    "cmd": ("/c", "/C", "/k", "/K"), "groovy": ("-e",), "elixir": ("-e",), "erl": ("-eval",), "guile": ("-c",), "emacs": ("--eval", "-eval"),
    "scala": ("-e",), "jshell": (), "gjs": ("-c",), "qjs": ("-e",), "irb": (), "racket": ("-e",),
    "sbcl": ("--eval",), "clisp": ("-x",), "octave": ("--eval",), "gnuplot": ("-e",), "raku": ("-e",), "swipl": ("-g",),
    "jrunscript": ("-e",), "jjs": (), "slsh": ("-e",), "octave-cli": ("--eval",), "puppet": ("-e", "--execute"), "ghci": ("-e",), "runghc": (), "pry": ("-e",),
    "janet": ("-e",), "bb": ("-e",), "clojure": ("-e", "-M"), "kotlin": ("-e",), "scsh": ("-c",), "gst": (), "io": ("-e",), "newlisp": ("-e",), "picolisp": ("-e",),
    "crystal": ("eval",), "nim": (), "pdb": (), "ghc": ("-e",), "ocaml": ("-e",), "gdb": (), "tsx": ("-e",), "ts-node": ("-e",),
}  # fmt: skip
"""Interpreters of other languages, with the options whose value is program text."""

FETCHERS = frozenset(
    {"curl", "wget", "nc", "ncat", "netcat", "socat", "telnet", "http", "https", "xh", "fetch", "aria2c", "lynx", "w3m", "links",
     "ftp", "tftp", "lftp", "ssh", "rsh", "openssl s_client", "websocat", "dig", "nslookup", "host", "gh api", "wget2", "curlie"}
)  # fmt: skip
"""What these print comes from the network."""

FETCHING_COMMANDS = {
    "gh": r"^(?:api|gist|release)\b", "glab": r"^api\b", "hub": r"^api\b", "aws": r"\bs3 cp \S+ -$|\bs3api get-object\b|\bssm get-|\bsecretsmanager\b", "gsutil": r"\bcat\b|\bcp \S+ -$",
    "gcloud": r"\bstorage cat\b", "rclone": r"^cat\b", "mc": r"^cat\b", "az": r"\bdownload\b", "scp": r"/dev/stdout$", "redis-cli": r"", "mosquitto_sub": r"", "kcat": r"",
}  # fmt: skip
"""Commands of other programs that print what lies on another machine."""

SENDERS = frozenset(
    {"curl", "wget", "nc", "ncat", "netcat", "socat", "telnet", "http", "https", "xh", "ftp", "tftp", "lftp", "ssh", "scp", "sftp",
     "rsync", "rclone", "mail", "mailx", "sendmail", "mutt", "websocat", "dig", "nslookup", "host", "wget2", "openssl", "curlie",
     "logger", "ping", "aws", "gsutil", "s3cmd"}
)  # fmt: skip
"""These may carry what they read, or their arguments, to another machine."""

DECODERS = frozenset({"base64", "base32", "basenc", "xxd", "uudecode", "openssl", "gpg", "gpg2", "gunzip", "zcat", "bunzip2", "bzcat",
                      "xzcat", "unxz", "zstdcat", "gzip", "xz", "bzip2", "zstd", "lz4", "uncompress", "od", "hexdump", "age", "ccrypt",
                      "brotli"})  # fmt: skip

DELETERS = frozenset(
    {"rm", "unlink", "rmdir", "shred", "srm", "wipe", "trash", "trash-put", "rimraf", "del-cli", "del", "rd", "erase",
     "Remove-Item", "ri", "rmtree", "grm", "gshred", "scrub", "nwipe", "bleachbit"}
)  # fmt: skip

DEVICE_TOOLS = frozenset(
    {"dd", "mkfs", "mke2fs", "mkswap", "wipefs", "sgdisk", "sfdisk", "fdisk", "cfdisk", "parted", "blkdiscard", "hdparm", "nvme",
     "zpool", "zfs", "lvremove", "vgremove", "pvremove", "cryptsetup", "mdadm", "badblocks", "diskutil", "format", "dcfldd", "ddrescue",
     "newfs", "gdisk", "partx", "dmsetup", "tune2fs", "btrfs", "fstrim", "losetup"}
)  # fmt: skip

PERMISSION_TOOLS = frozenset({"chmod", "chown", "chgrp", "chattr", "setfacl", "setcap", "xattr", "icacls", "takeown"})

LINK_FOLLOWERS = DELETERS | DEVICE_TOOLS | PERMISSION_TOOLS | frozenset(
    {"mv", "cp", "ln", "tee", "truncate", "find", "rsync", "tar", "cat", "less", "more", "head", "tail", "base64", "xxd", "od", "hexdump",
     "strings", "scp", "install", "sed", "awk", "gawk", "grep", "zip", "nc", "curl", "wget", "openssl", "gpg", "tac", "rev", "sort", "nl"}
)  # fmt: skip
"""At execve only these have their paths followed through links on the disk: it takes longer than all the rest."""

TAIL_TOOLS = DELETERS | DEVICE_TOOLS | PERMISSION_TOOLS | {
    "mv", "cp", "cat", "ln", "truncate", "find", "fd", "rsync", "kill", "tee", "shutdown", "crontab", "nc", "ncat", "netcat", "socat", "lyma", "terraform",
    "tofu", "pulumi", "aws", "gcloud", "kubectl", "wipefs", "iptables", "ufw", "systemctl", "journalctl", "pkill", "killall", "useradd", "usermod", "scp", "curl",
}  # fmt: skip
"""Where one of these stands among the arguments of a program that runs others, the rest is judged as a command."""

DESTRUCTIVE = ("rm", "chmod", "mv", "dd", "shred", "find", "mkfs")
"""What an unknown program may be."""

DATA_ONLY = frozenset(
    {"echo", "printf", "grep", "egrep", "fgrep", "rg", "ag", "ack", "cat", "bat", "less", "more", "head", "tail", "wc", "sort", "uniq",
     "cut", "tr", "rev", "tac", "nl", "column", "paste", "join", "comm", "diff", "cmp", "sdiff", "colordiff", "delta", "patch", "file",
     "stat", "ls", "eza", "exa", "tree", "du", "df", "which", "whereis", "type", "whatis", "man", "info", "apropos", "tldr", "help",
     "history", "alias", "git", "gh", "glab", "hub", "hg", "svn", "jq", "yq", "xmllint", "curl", "wget", "http", "apt-cache", "dpkg",
     "dpkg-query", "rpm", "apk", "pacman", "brew", "apt", "apt-get", "aptitude", "yum", "dnf", "zypper", "snap", "flatpak", "pip", "pip3",
     "gem", "cargo", "logger", "notify-send", "expr", "test", "[", "seq", "date", "basename", "dirname", "realpath", "readlink", "touch",
     "mkdir", "cp", "install", "ln", "vim", "vi", "nano", "code", "emacs", "subl", "strings", "sha256sum", "md5sum", "sum", "cksum",
     "pgrep", "ps", "top", "kubectl", "helm", "terraform", "tofu", "pulumi", "aws", "gcloud", "az", "heroku", "fly", "flyctl", "vercel",
     "netlify", "codespell", "shellcheck", "shfmt", "lyma", "lyma-server", "pytest", "tee", "export", "set", "read", "tar", "zip", "unzip",
     "gzip", "scp", "sed", "awk", "gawk", "mawk", "nawk", "systemctl", "service", "journalctl", "modprobe", "lsof", "killall", "pkill",
     "fuser", "sqlite3", "psql", "mysql", "mongosh", "mongo", "redis-cli", "xclip", "pbcopy", "wl-copy", "fzf", "figlet", "cowsay",
     "toilet", "lolcat", "yes", "banner", "dialog", "whiptail", "zenity", "say", "espeak", "wall", "mail", "gcc", "g++", "cc", "clang",
     "ld", "as", "ar", "nm", "objdump", "strip", "ldd", "make", "cmake", "ninja"}
    | DELETERS | DEVICE_TOOLS | PERMISSION_TOOLS
)  # fmt: skip
"""Arguments of these are names and text, never a command (where one of their options is, a table of its own says so)."""

INTERPRETED_FILES = {
    ".sh": "bash",
    ".bash": "bash",
    ".py": "python3",
    ".js": "node",
    ".mjs": "node",
    ".pl": "perl",
    ".rb": "ruby",
}


def language_of(program: str) -> str | None:
    """The language of an interpreter by its name, without a version (`python3.11` -> `python`)."""
    if program in LANGUAGES:
        return program
    name = program.rstrip("0123456789.-")
    return name if name in LANGUAGES else None


def is_shell(program: str) -> bool:
    return program in SHELLS


def is_tail_tool(program: str) -> bool:
    return program in TAIL_TOOLS or program.startswith(("mkfs.", "mke2fs."))
