"""The exec guard on a real kernel: what is spelled however, it sees the words that are executed."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lyma_server.isolation import kernel, probe
from tests.security.guarded import PYTHON, Guarded, identity

if TYPE_CHECKING:
    from lyma_server.isolation.guard import ExecRequest

pytestmark = [
    pytest.mark.skipif(not kernel.has_exec_notification(), reason="this kernel cannot ask about system calls"),
    pytest.mark.skipif(not os.path.exists(PYTHON), reason="there is no Python of the system"),
]
PLAIN = ["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups", "--"]
INSIDE = [
    *map(str, probe.find_bwraps()[:1]),
    "--bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--unshare-pid",
    "--proc",
    "/proc",
    "--",
]
RM = os.stat("/bin/rm")


def judge(request: ExecRequest) -> str | None:
    """Forbids `rm -rf`, whatever its name is today."""
    is_rm = identity(request.file) == (RM.st_dev, RM.st_ino)
    busybox = "busybox" in request.path or "busybox" in request.argv[:1]
    through_loader = "ld-linux" in request.path and any("rm" in word for word in request.argv)
    recursive = any(word.startswith("-rf") for word in request.argv)
    return (
        "rm -rf is forbidden" if recursive and (is_rm or through_loader or (busybox and "rm" in request.argv)) else None
    )


@pytest.fixture(
    params=[
        "as we are",
        pytest.param("plain", marks=pytest.mark.skipif(os.geteuid() != 0, reason="needs root")),
        "inside",
    ]
)
def prefix(request):
    if request.param == "inside" and len(INSIDE) < 9:
        pytest.skip("bubblewrap is not here")
    return {"as we are": [], "plain": PLAIN, "inside": INSIDE}[request.param]


@pytest.fixture
def place():
    """A folder that anybody may change, with a sentinel in it."""
    folder = Path(tempfile.mkdtemp(prefix="lyma-guard-", dir="/var/tmp"))
    folder.chmod(0o777)
    (folder / "sentinel").mkdir(mode=0o777)
    yield folder
    shutil.rmtree(folder)


def spelled(command: str) -> dict[str, str]:
    encoded = base64.b64encode(command.encode()).decode()
    return {
        "plainly": command,
        "with a variable": command.replace("rm", "a=r; b=m; $a$b", 1),
        "by base64": f"echo {encoded} | base64 -d | sh",
        "by a here-document": f"sh <<'X'\n{command}\nX",
        "in a script": f"printf '#!/bin/sh\\n{command}\\n' > s && chmod +x s && ./s",
        "by eval": f"eval \"$(printf '{command}')\"",
        "by python's system": f"{PYTHON} -c \"import os; os.system('{command}')\"",
        "by python's subprocess": f"{PYTHON} -c \"import subprocess; subprocess.run('{command}'.split())\"",
        "by python's execv": f"{PYTHON} -c \"import os; os.execvp('rm', '{command}'.split())\"",
        "by python's execveat": f"{PYTHON} -c \"import os; os.execve(os.open('/bin/rm', 0), '{command}'.split(), {{}})\"",
        "by perl": f"perl -e \"exec '{command}'\"",
        "by xargs": f"echo {command.split()[-1]} | xargs rm -rf",
        "by find": f"find {command.split()[-1]} -maxdepth 0 -exec rm -rf {{}} +",
        "by env": f"env {command}",
        "by nohup": f"nohup {command}",
        "by a link": f"ln -s /bin/rm harmless && ./harmless {' '.join(command.split()[1:])}",
        "by the loader": f"/lib64/ld-linux-x86-64.so.2 /bin/{command}",
        "in the background": f"({command} &) ; sleep 0.3",
        "with another argv[0]": f'bash -c "exec -a cat {command}"',
    }


@pytest.mark.parametrize("spelling", spelled("rm -rf x"))
def test_a_forbidden_exec_is_refused_and_its_twin_is_not(spelling, place, prefix):
    if spelling == "by perl" and shutil.which("perl") is None:
        pytest.skip("perl is not installed")
    sentinel = place / "sentinel"
    text = spelled(f"rm -rf {sentinel}")[spelling]
    guarded = Guarded(judge)
    guarded.run(["bash", "-c", text], prefix=prefix, cwd=place)
    assert sentinel.is_dir()
    assert guarded.refusals
    benign = Guarded(lambda _: None)
    (place / "s").unlink(missing_ok=True)
    (place / "harmless").unlink(missing_ok=True)
    benign.run(["bash", "-c", text], prefix=prefix, cwd=place)
    assert not sentinel.exists(), "the control must lose its sentinel"


def test_the_request_says_what_is_executed(place, prefix):
    guarded = Guarded(lambda _: None)
    result = guarded.run(
        ["bash", "-c", "cd sentinel; /bin/echo 'a b' \"\" ü; cd /; exec -a other /bin/cat /dev/null"],
        prefix=prefix,
        cwd=place,
    )
    assert result.stdout == "a b  ü\n"
    by_path = {request.path: request for request in guarded.requests}
    assert by_path["/bin/echo"].argv == ("/bin/echo", "a b", "", "ü")
    assert by_path["/bin/echo"].cwd == str(place / "sentinel")
    assert by_path["/bin/cat"].argv == ("other", "/dev/null")


def test_long_words_and_many_words_are_read_whole():
    guarded = Guarded(lambda _: None)
    words = ["x" * 100_000, *map(str, range(20_000)), "end"]
    guarded.run(["/bin/true", *words])
    assert guarded.requests[-1].argv == ("/bin/true", *words)


def test_a_search_along_path_asks_the_judge_once(place):
    guarded = Guarded(lambda _: None)
    environment = {**os.environ, "PATH": ":".join([f"/nowhere/{n}" for n in range(30)] + [os.environ["PATH"]])}
    result = guarded.run(["env", "true"], env=environment)
    assert result.returncode == 0
    assert [Path(request.path).name for request in guarded.requests] == ["env", "true"]


def test_a_program_that_is_not_there_stays_so():
    guarded = Guarded(lambda _: None)
    result = guarded.run(["bash", "-c", "no-such-program; ./neither; echo $?"])
    assert "command not found" in result.stdout
    assert "No such file" in result.stdout


def test_a_judge_that_fails_refuses():
    def broken(request):
        if "echo" in request.path:
            raise ValueError
        return

    guarded = Guarded(broken)
    result = guarded.run(["bash", "-c", "/bin/echo said || echo refused"])
    assert result.stdout.splitlines()[-1] == "refused"
    assert "could not be judged (ValueError)" in guarded.refusals[0][1]


def test_a_program_from_memory_is_seen(place):
    program = "import os; f=os.memfd_create('m'); os.write(f, open('/bin/rm','rb').read()); os.execve(f, ['cat','-rf','sentinel'], {})"
    guarded = Guarded(lambda request: "from memory" if "memfd:" in request.path else None)
    guarded.run([PYTHON, "-c", program], cwd=place)
    assert (place / "sentinel").exists()
    assert guarded.refusals[0] == (("cat", "-rf", "sentinel"), "from memory")


OTHER_GATES = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
page = libc.mmap(None, 4096, 7, 0x62, -1, 0)  # MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT
int80 = bytes.fromhex("53 b8 0b000000 89fb 89f1 31d2 cd80 5b c3")
x32 = bytes.fromhex("b8 08020040 31d2 0f05 c3")
code = {"int80": int80, "x32": x32}[sys.argv[1]]
def put(offset, data):
    ctypes.memmove(page + offset, data, len(data))
    return page + offset
put(0, code)
path = put(256, b"/bin/echo\\0")
word = put(512, b"PASSED\\0")
argv = put(768, b"".join(p.to_bytes(4, "little") for p in (path, word, 0)))
sys.stdout.flush()
print("answer", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_ulong, ctypes.c_ulong)(page)(path, argv))
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="this kernel has no second gate")
@pytest.mark.parametrize("gate", ["int80", "x32"])
def test_no_other_gate_to_the_kernel_is_open(gate):
    bare = subprocess.run([PYTHON, "-c", OTHER_GATES, gate], capture_output=True, text=True, check=False)
    guarded = Guarded(lambda _: None).run([PYTHON, "-c", OTHER_GATES, gate])
    assert guarded.stdout == "answer -1\n"
    assert bare.stdout in ("PASSED\n", "answer -38\n") or bare.returncode < 0, "the control"


def test_every_exec_of_a_loop_is_judged():
    guarded = Guarded(lambda _: None)
    assert guarded.run(["bash", "-c", "for i in $(seq 100); do /bin/true; done"]).returncode == 0
    assert sum(request.path == "/bin/true" for request in guarded.requests) == 100


def test_privileges_do_not_grow():
    result = Guarded(lambda _: None).run(["grep", "NoNewPrivs", "/proc/self/status"])
    assert result.stdout.split() == ["NoNewPrivs:", "1"]


def test_a_second_guard_is_refused():
    program = f"import sys; sys.path.insert(0, {str(Path(kernel.__file__).parents[2])!r})\nfrom lyma_server.isolation import seccomp\ntry: seccomp.install()\nexcept OSError as e: print(e.errno)"
    assert Guarded(lambda _: None).run([PYTHON, "-c", program]).stdout == "16\n"


def test_what_it_becomes_is_looked_at_once_more(place):
    """A thread rewrites the words between the judgement and the kernel's own reading; some runs win, none goes on."""
    guarded = Guarded(lambda request: "changed" if "FORBIDDEN" in request.argv else None)
    program = place / "race.py"
    program.write_text(RACE)
    for _ in range(20):
        guarded.run([PYTHON, str(program)], cwd=place)
    said = (place / "said").read_text() if (place / "said").exists() else ""
    assert "FORBIDDEN" not in said
    assert "permitted" in said or guarded.refusals


RACE = """
import ctypes, os, threading
libc = ctypes.CDLL(None)
word = ctypes.create_string_buffer(b"permitted")
argv = (ctypes.c_char_p * 4)(b"sh", b"-c", b"sleep 0.2; echo $0 >> said", None)
pointers = (ctypes.c_void_p * 5)(*[ctypes.cast(ctypes.c_char_p(w), ctypes.c_void_p).value for w in (b"sh", b"-c", b"sleep 0.2; echo $0 >> said")], ctypes.addressof(word), None)
def flip():
    while True:
        word.value = b"FORBIDDEN"
        word.value = b"permitted"
threading.Thread(target=flip, daemon=True).start()
libc.execve(b"/bin/sh", pointers, None)
"""


HIDDEN = "import ctypes, os; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); os.execv('/bin/true', ['true'])"
"""Keeps its memory from being read (PR_SET_DUMPABLE), and then starts a program."""


def test_who_hides_its_memory_starts_nothing_that_we_cannot_judge(place):
    guarded = Guarded(lambda _: None)
    may_look = os.geteuid() == 0
    result = guarded.run([PYTHON, "-c", HIDDEN], cwd=place)
    assert (result.returncode == 0) is may_look
    assert bool(guarded.refusals) is not may_look
