"""Evasions made from templates: whatever is done to a forbidden command it stays forbidden, and an allowed one allowed."""

from __future__ import annotations

import base64
import shlex

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.commands import judged

FORBIDDEN = [
    ["rm", "-rf", "/"], ["rm", "-r", "-f", "/home/dev"], ["rm", "-rf", "/etc"], ["rm", "--recursive", "/home/dev/app"], ["mkfs.ext4", "/dev/sda1"],
    ["dd", "if=/dev/zero", "of=/dev/sda"], ["chmod", "-R", "777", "/"], ["find", "/", "-delete"], ["shutdown", "-h", "now"], ["kill", "-9", "1"],
    ["cat", "/home/dev/.ssh/id_rsa"], ["cat", "/etc/shadow"], ["terraform", "destroy"], ["mv", "/home/dev", "/tmp/x"], ["lyma", "approve", "x"],
    ["rm", "-f", "/home/dev/.bash_history"], ["cp", "k", "/home/dev/.ssh/authorized_keys"], ["nc", "-e", "/bin/sh", "h", "1"], ["crontab", "-r"],
]  # fmt: skip
ALLOWED = [
    ["rm", "-rf", "build"], ["rm", "-rf", "/tmp/x"], ["ls", "-la", "/"], ["mkfs.ext4", "disk.img"], ["dd", "if=/dev/zero", "of=disk.img"], ["echo", "rm", "-rf", "/"],
    ["chmod", "-R", "755", "public"], ["find", ".", "-name", "x.pyc", "-delete"], ["kill", "-9", "4242"], ["cat", "/etc/passwd"], ["terraform", "plan"],
    ["git", "commit", "-m", "rm -rf /"], ["grep", "-r", "shutdown", "."], ["mv", "a", "b"], ["cp", "-r", "src", "/tmp/y"], ["nc", "-zv", "h", "1"], ["make", "clean"],
]  # fmt: skip
CHANCE = st.randoms(use_true_random=False)


def spelt(word, chance):
    """The same word with other quotes."""
    ways = [
        shlex.quote, lambda w: '"' + w + '"', lambda w: "'" + w + "'", lambda w: w[:1] + "''" + w[1:], lambda w: "\\" + w if w[0].isalpha() else w,
        lambda w: "$'" + "".join(f"\\x{ord(c):02x}" for c in w) + "'", lambda w: w[:1] + '"' + w[1:] + '"', lambda w: "".join(f"'{c}'" for c in w),
        lambda w: "$(printf %s " + shlex.quote(w) + ")", lambda w: '"$(printf "%s\\n" ' + shlex.quote(w) + ')"', lambda w: "`printf '%s\\n' " + shlex.quote(w) + "`",
        lambda w: "${nope:-" + shlex.quote(w) + "}", lambda w: "$(echo " + shlex.quote(w[::-1]) + " | rev)",
        lambda w: '"$(echo ' + base64.b64encode(w.encode()).decode() + ' | base64 -d)"',
    ]  # fmt: skip
    spaces = " " in word
    return (shlex.quote if spaces else chance.choice(ways))(word)


def through_variables(argv, chance):
    names = [f"v{index}" for index in range(len(argv))]
    given_names = "; ".join(f"{name}={shlex.quote(word)}" for name, word in zip(names, argv, strict=True))
    return f"{given_names}; " + " ".join(f'"${name}"' for name in names)


def plain(argv):
    return " ".join(map(shlex.quote, argv))


SHAPES = [
    lambda argv, chance: " ".join(spelt(word, chance) for word in argv),
    through_variables,
    lambda argv, chance: "a=(" + plain(argv) + '); "${a[@]}"',
    lambda argv, chance: "set -- " + plain(argv) + '; "$@"',
    lambda argv, chance: "f() { " + plain(argv) + "; }; f",
    lambda argv, chance: 'f() { "$@"; }; f ' + plain(argv),
    lambda argv, chance: "X=1 Y=2 " + plain(argv),
    lambda argv, chance: "if true; then " + plain(argv) + "; fi",
    lambda argv, chance: "for i in 1 2; do " + plain(argv) + "; done",
    lambda argv, chance: "(cd /tmp; cd - > /dev/null; " + plain(argv) + ")",
    lambda argv, chance: "{ " + plain(argv) + "; } 2>&1",
    lambda argv, chance: "> /tmp/log " + plain(argv),
    lambda argv, chance: "true && " + plain(argv) + " || false",
    lambda argv, chance: "x=$(" + plain(argv) + ")",
    lambda argv, chance: "diff <(" + plain(argv) + ") /dev/null",
    lambda argv, chance: plain(argv) + " & wait",
    lambda argv, chance: "trap " + shlex.quote(plain(argv)) + " EXIT",
]
TEXTS = [
    lambda text: "bash -c " + shlex.quote(text),
    lambda text: "sh -ec " + shlex.quote(text),
    lambda text: "eval " + shlex.quote(text),
    lambda text: "echo " + shlex.quote(text) + " | sh",
    lambda text: "printf '%s\\n' " + shlex.quote(text) + " | bash -s",
    lambda text: "bash <<< " + shlex.quote(text),
    lambda text: f"bash <<'END{len(text)}'\n{text}\nEND{len(text)}",
    lambda text: "echo " + base64.b64encode(text.encode()).decode() + " | base64 -d | sh",
    lambda text: "echo " + shlex.quote(text) + " > /tmp/s.sh; bash /tmp/s.sh",
    lambda text: "source <(echo " + shlex.quote(text) + ")",
    lambda text: "python3 -c " + shlex.quote(f"import os; os.system({text!r})"),
    lambda text: "perl -e " + shlex.quote('system("' + text.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$").replace("@", "\\@") + '")'),
    lambda text: "find . -maxdepth 0 -exec sh -c " + shlex.quote(text) + " \\;",
    lambda text: "watch -n1 " + shlex.quote(text),
    lambda text: "ssh host " + shlex.quote(text),
    lambda text: "su -c " + shlex.quote(text),
]  # fmt: skip
WRAPPERS = [
    "sudo",
    "sudo -u root",
    "env",
    "env A=1",
    "nohup",
    "timeout 5",
    "nice -n 5",
    "stdbuf -oL",
    "setsid",
    "command",
    "time",
    "xargs -r",
    "busybox",
    "ionice -c3",
]


def wrapped(argv, chance, wrappers=WRAPPERS):
    """One shape, perhaps behind a wrapper, perhaps as program text once or twice."""
    prefix = chance.choice([*wrappers, ""])
    if prefix and chance.random() < 0.5:
        return prefix + " " + plain(argv) + (" < /dev/null" if prefix.startswith("xargs") else "")
    text = chance.choice(SHAPES)(argv, chance)
    for _ in range(chance.choice((0, 0, 1, 2))):
        text = chance.choice(TEXTS)(text)
    return text


RELAXED = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@RELAXED
@given(st.sampled_from(FORBIDDEN), CHANCE)
def test_no_shape_frees_a_forbidden_command(argv, chance):
    command = wrapped(argv, chance, [*WRAPPERS, "unknown-wrapper"])
    assert judged(command).verdict == "block", command


@RELAXED
@given(st.sampled_from(ALLOWED), CHANCE)
def test_no_shape_forbids_an_allowed_command(argv, chance):
    command = wrapped(argv, chance)
    assert judged(command).verdict == "allow", (command, judged(command))
