"""The guard alone against every spelling of a forbidden deed: a control that loses its sentinel, a twin that is allowed."""

from __future__ import annotations

import base64
import os
import platform
import shutil
import sys

import pytest
import pytest_asyncio

from lyma_server.isolation import kernel, seccomp
from tests.security.enclosed import BWRAPS, SYSTEM_PYTHON, World

pytestmark = [
    pytest.mark.skipif(not kernel.has_exec_notification(), reason="this kernel cannot ask about system calls"),
    pytest.mark.skipif(not BWRAPS or sys.platform != "linux", reason="bubblewrap is not here"),
    pytest.mark.asyncio(loop_scope="module"),
]
USERS = [
    pytest.param("root", marks=pytest.mark.skipif(os.geteuid() != 0, reason="needs root")),
    pytest.param("plain"),
]
LOADER = {"x86_64": "/lib64/ld-linux-x86-64.so.2", "aarch64": "/lib/ld-linux-aarch64.so.1"}.get(platform.machine(), "")
PY = SYSTEM_PYTHON
RM = os.path.realpath("/bin/rm")

SPELLINGS = {
    "plainly": "rm -rf {t}",
    "by its real path": "{rm} -rf {t}",
    "with long options": "rm --recursive --force {t}",
    "with variables": "a=r; b=m; $a$b -rf {t}",
    "with a slash too many": "rm -rf {t}/",
    "through the folder above": "rm -rf {t}/../{name}",
    "by eval": "eval \"$(printf 'rm -rf %s' {t})\"",
    "by base64": "echo {code} | base64 -d | sh",
    "by a here-document": "sh <<'X'\nrm -rf {t}\nX",
    "in a script": "printf '#!/bin/sh\\nrm -rf {t}\\n' > s; chmod +x s; ./s",
    "in a script without a first line": "printf 'rm -rf {t}\\n' > s; chmod +x s; ./s",
    "with rm as the interpreter": "printf '#!{rm} -rf\\n' > s; chmod +x s; ./s {t}",
    "with rm as the interpreter's interpreter": "printf '#!{rm} -rf\\n' > s; chmod +x s; printf '#!./s\\n' > u; chmod +x u; ./u {t}",
    "by python's system": "{py} -c \"import os; os.system('rm -rf {t}')\"",
    "by python's subprocess": "{py} -c \"import subprocess; subprocess.run(['rm', '-rf', '{t}'])\"",
    "by python's spawn": "{py} -c \"import os; os.waitpid(os.posix_spawn('/bin/rm', ['rm', '-rf', '{t}'], {{}}), 0)\"",
    "by python's descriptor": "{py} -c \"import os; os.execve(os.open('/bin/rm', 0), ['x', '-rf', '{t}'], {{}})\"",
    "by a thread": "{py} -c \"import os, threading; t = threading.Thread(target=os.execv, args=('/bin/rm', ['rm', '-rf', '{t}'])); t.start(); t.join()\"",
    "from memory": "{py} -c \"import os; f = os.memfd_create('m'); os.write(f, open('/bin/rm', 'rb').read()); os.execve(f, ['x', '-rf', '{t}'], {{}})\"",
    "from memory by its place in /proc": "{py} -c \"import os; f = os.memfd_create('m', 0); os.write(f, open('/bin/rm', 'rb').read()); os.execv('/proc/self/fd/%d' % f, ['x', '-rf', '{t}'])\"",
    "on what a descriptor leads to": "exec 9< {t}; rm -rf /dev/fd/9/../$(basename {t})",
    "by perl": 'perl -e \'system("rm", "-rf", "{t}")\'',
    "by xargs": "echo {t} | xargs rm -rf",
    "by find -exec": "find {t} -maxdepth 0 -exec rm -rf {{}} +",
    "by find -delete": "find {t} -delete",
    "by env": "env -i rm -rf {t}",
    "by nohup, nice, timeout and setsid": "nohup nice timeout 9 setsid -w rm -rf {t}",
    "by a link": "ln -s /bin/rm harmless; ./harmless -rf {t}",
    "by a copy": "cp /bin/rm harmless; ./harmless -rf {t}",
    "by a copy with something added": "cp /bin/rm harmless; echo >> harmless; ./harmless -rf {t}",
    "by a copy that nobody may read": "cp /bin/rm harmless; chmod 111 harmless; ./harmless -rf {t}",
    "by a copy in the private /tmp": "cp /bin/rm /tmp/harmless; (exec -a cat /tmp/harmless -rf {t})",
    "by another first word": "exec -a cat /bin/rm -rf {t}",
    "by the loader": "{loader} /bin/rm -rf {t}",
    "by the loader with another first word": "{loader} --argv0 cat /bin/rm -rf {t}",
    "by a copy of the loader": "cp {loader} l; ./l /bin/rm -rf {t}",
    "by the loader and a copy": "cp /bin/rm harmless; {loader} ./harmless -rf {t}",
    "in the background": "(rm -rf {t} &) ; sleep 0.3",
    "through a link to the folder": "ln -s {above} up; rm -rf up/{name}",
    "through a link in the private /tmp": "ln -sfn {above} /tmp/up; rm -rf /tmp/up/{name}",
    "from within": "cd {above}; rm -rf ./{name}",
    "up from where a link leads": "ln -s {t} up; rm -rf up/../{name}",
    "through a link to what a descriptor leads to": "exec 9< {t}; ln -s /proc/self/fd/9 up; rm -rf up/../{name}",
    "through the folder of one's descriptors": "exec 9< {above}; ln -s /proc/self/fd up; rm -rf up/9/{name}",
    "on what another process has open": "sleep 9 9< {above} & sleep 0.2; rm -rf /proc/$!/fd/9/{name}; kill $!",
    "through a link to another's folder": "(cd {above}; exec sleep 9) & ln -s /proc/$!/cwd up; sleep 0.2; rm -rf up/{name}; kill $!",
    "through the descriptors of one's own thread": "exec 9< {above}; sh -c 'exec rm -rf /proc/self/task/$$/fd/9/{name}'",
    "through one's own number": "exec 9< {above}; sh -c 'exec rm -rf /proc/$$/fd/9/{name}'",
    "through one's own folder": "exec 9< {above}; cd /proc/self; rm -rf fd/9/{name}",
    "through a detour to one's descriptors": "exec 9< {above}; rm -rf /proc/self/../self/./fd//9/{name}",
    "on what stdin leads to": "rm -rf /dev/stdin/{name} < {above}",
    "after many other words": "rm -rf $(seq 20000) {t}",
    "by execveat from a folder": "{py} -c \"import ctypes, os; a = (ctypes.c_char_p * 4)(b'cat', b'-rf', b'{t}', None); ctypes.CDLL(None).syscall({execveat}, os.open('/usr/bin', 0), b'rm', a, None, 0)\"",
    "by a link with a link's name": "mkdir l; ln -s {above} l/-; cd l; rm -rf ./-/{name}",
    "through a link to stdin": "ln -s /dev/fd/0 up; rm -rf up/{name} < {above}",
    "by a shell that is called otherwise": "ln -s /bin/sh cat; ./cat -c 'rm -rf {t}'",
    "by a script for env": "printf '#!/usr/bin/env -S rm -rf\\n' > s; chmod +x s; ./s {t}",
    "by find through a link": "ln -s {above} up; find up/{name}/ -delete",
    "by find from within": "cd {t}; find . -delete; cd ..; rmdir {t}",
    "by awk": "awk 'BEGIN {{ system(\"rm -rf {t}\") }}'",
    "by sed": "sed '1e rm -rf {t}' /etc/hostname",
    "by make": "printf 'all:\\n\\trm -rf {t}\\n' > Makefile; make -s",
    "by git": "git -c alias.x='!rm -rf {t}' x",
    "by tar's checkpoint": "tar cf /dev/null --checkpoint=1 --checkpoint-action=exec='rm -rf {t}' /etc/hostname",
    "by sort": "seq 999999 | sort -S 10k --compress-program=./z >/dev/null; printf '#!/bin/sh\\nrm -rf {t}\\ncat\\n' > z; chmod +x z; seq 99999 | sort -S 10k --compress-program=./z >/dev/null",
    "by moving it away": "mv {t} /tmp/gone",
    "by tar": "tar -C {above} -cf /dev/null --remove-files {name}",
    "by /proc's own link": "cd {above}; rm -rf /proc/self/cwd/{name}",
}
if shutil.which("node"):
    SPELLINGS["by node"] = "node -e \"require('child_process').spawnSync('rm', ['-rf', '{t}'])\""
if shutil.which("busybox"):
    SPELLINGS |= {
        "by busybox": "busybox rm -rf {t}",
        "by a busybox of another name": "ln -s $(which busybox) rm; ./rm -rf {t}",
        "by busybox under a longer name": "exec -a busyboxes busybox rm -rf {t}",
        "by a copy of busybox": "cp $(which busybox) b; exec -a rm ./b -rf {t}",
    }


def spelled(spelling: str, target) -> str:
    code = base64.b64encode(f"rm -rf {target}".encode()).decode()
    facts = {
        "t": target,
        "name": target.name,
        "above": target.parent,
        "code": code,
        "rm": RM,
        "py": PY,
        "loader": LOADER,
        "execveat": seccomp.MACHINES[platform.machine()].execveat,
    }
    return SPELLINGS[spelling].format(**facts)


@pytest_asyncio.fixture(params=USERS, scope="module", loop_scope="module")
async def place(request):
    """The world of one user, and the enclosure in it."""
    world = World(request.param)
    world.furnish()
    with pytest.MonkeyPatch.context() as patch:
        inside = await world.open(patch)
        assert inside.guard == "on"
        yield world, inside
        await inside.close()
    world.remove()


@pytest.mark.parametrize("spelling", SPELLINGS)
async def test_the_guard_refuses_and_allows_the_twin(spelling, place):
    world, inside = place
    world.furnish()
    process, said = await world.guarded(inside, spelled(spelling, world.home))
    assert world.survives, said
    assert "fs-wipe" in {refusal.rule for refusal in process.refusals}, said
    world.furnish()
    twin = world.work / "build"
    process, said = await world.guarded(inside, spelled(spelling, twin))
    assert not twin.exists(), said
    assert process.refusals == []
    world.furnish()
    said = await world.unguarded(spelled(spelling, world.home))
    assert not world.survives, f"the control must lose its sentinel: {said}"


OTHER_GATES = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
page = libc.mmap(None, 8192, 7, 0x62, -1, 0)  # MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT
codes = {"int80": "53 b8 0b000000 89fb 89f1 31d2 cd80 5b c3", "x32": "b8 08020040 31d2 0f05 c3"}
ctypes.memmove(page, bytes.fromhex(codes[sys.argv[1]]), len(bytes.fromhex(codes[sys.argv[1]])))
at = page + 256
def put(data):
    global at
    ctypes.memmove(at, data, len(data))
    at += len(data) + 16
    return at - len(data) - 16
words = [put(word.encode() + bytes(1)) for word in ("/bin/rm", "-rf", sys.argv[2])]
argv = put(b"".join(word.to_bytes(4, "little") for word in (*words, 0)))
print("answer", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_ulong, ctypes.c_ulong)(page)(words[0], argv))
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="this kernel has no second gate")
@pytest.mark.parametrize("gate", ["int80", "x32"])
async def test_no_other_gate_to_the_kernel_is_open(gate, place):
    world, inside = place
    world.furnish()
    (world.work / "gate.py").write_text(OTHER_GATES)
    text = f"{PY} {world.work}/gate.py {gate} {world.home}"
    _, said = await world.guarded(inside, text)
    assert (world.survives, said) == (True, "answer -1\n")
    said = await world.unguarded(text)
    if gate == "x32" and "answer -38" in said:
        pytest.skip("this kernel knows no x32, so there is no control")
    if gate == "int80" and (said == "" or "answer -" in said) and world.survives:
        pytest.skip("this kernel knows no i386, so there is no control")
    assert not world.survives, "the control must lose its sentinel"


MOUNTED = "unshare -Urm sh -c 'mkdir /tmp/m; mount --bind {above} /tmp/m && rm -rf /tmp/m/{name}'"


async def test_a_second_mount_is_no_other_folder(place):
    world, inside = place
    if not world.plain:
        pytest.skip(
            "needs a plain user: root has these rights without a namespace, and in a sandbox of ours it has neither"
        )
    world.furnish()
    said = await world.unguarded(MOUNTED.format(above=world.home.parent, name=world.home.name))
    if world.survives:
        pytest.skip(f"this kernel lets nobody mount: {said}")
    world.furnish()
    process, said = await world.guarded(inside, MOUNTED.format(above=world.home.parent, name=world.home.name))
    assert (world.survives, {refusal.rule for refusal in process.refusals}) == (True, {"fs-wipe"}), said
    process, said = await world.guarded(inside, MOUNTED.format(above=world.work, name="build").replace("/m", "/n"))
    assert (process.refusals, (world.work / "build").exists()) == ([], False), said


UNTWINNED = {
    "through a link whose name holds our own marks": "n=$(printf '\\U10ff00'); ln -s {above} up$n; rm -rf up$n/{name}",
    "through a link of a mark alone": "n=$(printf '\\U10ff21'); ln -s {above} $n; rm -rf $n/{name}",
    "by a list for find": "cd build; printf '%s\\0' {t} > list; find -files0-from list -delete",
    "by a list for tar": "cd build; echo {t} > list; tar cPf /dev/null --remove-files -T list",
}
"""Spellings that are refused wherever they lead."""


@pytest.mark.parametrize("spelling", UNTWINNED)
async def test_the_guard_refuses_what_does_not_say_where_it_leads(spelling, place):
    world, inside = place
    world.furnish()
    text = UNTWINNED[spelling].format(t=world.home, name=world.home.name, above=world.home.parent)
    process, said = await world.guarded(inside, text)
    assert world.survives, said
    assert process.refusals, said
    world.furnish()
    said = await world.unguarded(text)
    assert not world.survives, f"the control must lose its sentinel: {said}"
