"""Everyday work is not in the way: a tour in the default settings, each step ending in 0 with its effect checked."""

from __future__ import annotations

import os
import pwd
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

from lyma_server.isolation import kernel, probe
from tests.command_sessions import commands_in, throwaway_home

pytestmark = pytest.mark.skipif(not kernel.has_exec_notification(), reason="this kernel cannot ask about system calls")
TIERS = [
    pytest.param("bwrap", marks=pytest.mark.skipif(not probe.find_bwraps(), reason="bubblewrap is not here")),
    pytest.param("landlock", marks=pytest.mark.skipif(not kernel.landlock_abi(), reason="this kernel has no Landlock")),
]

IDENTITY = {
    f"GIT_{role}_{part}": "dev@example.invalid" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")
}

STEPS = [
    ("git", "git init -q --bare /tmp/remote.git && git init -q -b main seed && git -C seed commit -q --allow-empty -m 'first: rm -rf / is only text'", "seed/.git/HEAD"),
    ("git", "git clone -q seed app && git -C app remote add far /tmp/remote.git", "app/.git/config"),
    ("git", "cd app && printf 'def two():\\n    return 2\\n' > two.py && git add -A && git commit -q -m 'Add two' && git push -q far HEAD:main && git -C /tmp/remote.git rev-parse main", "app/two.py"),
    ("git", "cd app && git checkout -q -b topic && git stash list && git rebase -q main && git branch -D main && git gc -q && git clean -fdx", "app/two.py"),
    ("python3", "cd app && sed -i 's/return 2/return 1 + 1/' two.py && grep -q '1 + 1' two.py && git diff --stat", "app/two.py"),
    ("python3", "python3 -m venv .venv && .venv/bin/pip install -q --disable-pip-version-check --no-index demo-1.0-py3-none-any.whl && .venv/bin/python -c 'import demo'", ".venv/bin/python"),
    ("python3", "cd app && printf 'from two import two\\ndef test_two():\\n    assert two() == 2\\n' > test_two.py && {python} -m pytest -q -p no:cacheprovider test_two.py", "app/test_two.py"),
    ("make", "printf 'all: hello\\nclean:\\n\\trm -rf build hello\\n' > Makefile && printf '#include <stdio.h>\\nint main(void){{puts(\"hello\");}}\\n' > hello.c && make -s && ./hello | grep -q hello", "hello"),
    ("make", "mkdir build && make -s clean && ! test -e build", "Makefile"),
    ("rg", "rg -q 'return' app && rg --files | sort | head -3", "app/two.py"),
    ("npm", "mkdir -p js/dep && cd js && echo '{{\"name\":\"dep\",\"version\":\"1.0.0\"}}' > dep/package.json && echo '{{\"name\":\"top\",\"version\":\"1.0.0\"}}' > package.json && npm install --offline --no-audit --no-fund --silent ./dep && rm -rf node_modules && npm ci --offline --no-audit --no-fund --silent", "js/node_modules"),
    ("cargo", "cargo new -q --vcs none bolt && cd bolt && cargo build -q --offline && ./target/debug/bolt", "bolt/target/debug/bolt"),
    ("docker", "docker --help > docker.txt", "docker.txt"),
    ("curl", "(python3 -m http.server --bind 127.0.0.1 {port} > server.log 2>&1 & echo $! > pid); for i in $(seq 100); do curl -sf http://127.0.0.1:{port}/pid > got && break; sleep 0.05; done; kill $(cat pid) && cmp pid got", "got"),
    ("tar", "tar czf app.tgz app && mkdir out && tar xzf app.tgz -C out && cmp app/two.py out/app/two.py && rm -rf out app.tgz", "app"),
    ("find", "touch a.pyc && find . -name '*.pyc' -delete && find app -type f -exec chmod u+w {{}} + && xargs -a <(ls) -n1 echo > listed && rm -f listed", "app"),
    ("bash", 'for f in *.whl; do echo "$f" | tr a-z A-Z; done; export X=1; { sleep 0.1; echo later; } & wait; cat <<< done; mktemp -d && rm -rf /tmp/tmp.*', "demo-1.0-py3-none-any.whl"),
]  # fmt: skip
"""The program that a step needs, the command, and what must be there after it."""


def write_wheel(folder: Path) -> None:
    """A package that needs no network and no builder."""
    with zipfile.ZipFile(folder / "demo-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("demo.py", "")
        wheel.writestr("demo-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")
        wheel.writestr(
            "demo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr("demo-1.0.dist-info/RECORD", "demo.py,,\n")


def environment() -> dict[str, str]:
    """The user's own tools, wherever they lie."""
    toolchains = os.environ.get("RUSTUP_HOME", str(Path(pwd.getpwuid(os.getuid()).pw_dir, ".rustup")))
    return {**IDENTITY, "PATH": os.environ["PATH"], "RUSTUP_HOME": toolchains}


def free_port() -> int:
    import socket

    with socket.socket() as probed:
        probed.bind(("127.0.0.1", 0))
        return probed.getsockname()[1]


@pytest.mark.full
@pytest.mark.parametrize("tier", TIERS)
async def test_a_day_of_work_meets_no_refusal(tier, monkeypatch):
    if tier == "landlock":
        monkeypatch.setattr(probe, "find_bwraps", list)
    with throwaway_home() as home:
        work = home / "work"
        write_wheel(work)
        commands = commands_in(home, environment=environment())
        facts = {"python": sys.executable, "port": free_port()}
        try:
            for program, step, effect in STEPS:
                if shutil.which(program) is None:
                    continue
                step = step.replace("/tmp", "$TMPDIR") if tier == "landlock" else step
                text = step.format(**facts) if program != "bash" else step
                run = await commands.run(text, timeout_s=120)
                assert (run.status, run.refusals) == (0, []), f"{step}\n{run.output.text()}"
                assert (work / effect).exists(), step
                assert not run.leaves_processes, step
        finally:
            await commands.close()
