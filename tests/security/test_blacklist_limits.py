"""Deep, long, broken and odd strings: each gets a verdict in time and within memory, and none is allowed by accident."""

from __future__ import annotations

import json
import random
import re
import subprocess
import time
from pathlib import Path

import pytest

from tests.commands import HOME, WORKSPACE, judged
from tests.data.pathological import all_strings, broken, explosive
from tests.lyma import COMMAND

SECONDS, MEGABYTES = 3.0, 300
HARMFUL = "rm -rf /home/dev"


def test_each_string_that_explodes_gets_a_verdict():
    slow = []
    for text in (*explosive(), *broken()):
        start = time.perf_counter()
        assert judged(text).verdict in ("allow", "block")
        if time.perf_counter() - start > SECONDS:
            slow.append(text[:60])
    assert slow == []


@pytest.mark.parametrize("text", [*explosive(), *broken()][::3], ids=lambda text: repr(text[:24]))
def test_what_cannot_be_followed_hides_nothing(text):
    """A forbidden command stays forbidden beside any of them, before and after."""
    assert judged(f"{HARMFUL}\n{text}").verdict == "block"
    assert judged(f"{text}\n{HARMFUL}").verdict == "block" or "<<" in text or text.endswith(("\\", "exit"))


def test_a_long_harmless_command_is_allowed():
    """Limits are far from everyday work."""
    assert judged("cat > notes.md <<'END'\n" + "| a | b | (c) `d` $e && f || g\n" * 200 + "END").allowed
    assert judged("echo " + " ".join(f"file{n}.txt" for n in range(2000))).allowed
    assert judged(" && ".join(f"make target{n}" for n in range(100))).allowed
    assert judged("\n".join(f"step_{n}() {{ echo {n}; }}; step_{n}" for n in range(60))).allowed


@pytest.mark.full
def test_a_thousand_strings_within_time_and_memory():
    strings = all_strings()
    rows = [json.dumps({"command": text, "cwd": WORKSPACE, "home": HOME, "workspace": WORKSPACE}) for text in strings]
    process = subprocess.Popen([*COMMAND, "check", "--jsonl"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    slow = []
    for text, row in zip(strings, rows, strict=True):
        start = time.perf_counter()
        process.stdin.write(row + "\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        assert answer["verdict"] in ("allow", "block")
        assert "judging it failed" not in answer["reason"], text[:80]
        if (took := time.perf_counter() - start) > SECONDS:
            slow.append((took, text[:60]))
    [peak] = re.findall(r"^VmHWM:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text(), re.MULTILINE)
    process.stdin.close()
    process.stdout.close()
    assert process.wait(10) == 0
    assert slow == []
    assert 10 < int(peak) / 1024 < MEGABYTES


def test_cut_commands_never_raise():
    chance = random.Random(4)
    whole = 'if [ -d ~ ]; then for f in $(ls "$HOME"/{a,b}*); do x=${f%.*}; rm -rf "$x" <<E >&2\nE\ndone; fi | sh -c \'eval "$(cat)"\''
    for _ in range(60):
        start, end = sorted(chance.sample(range(len(whole)), 2))
        assert judged(whole[start:end]).verdict in ("allow", "block")
