"""An evil agent's tool: it tries one thing after the other from inside the sandbox. Standard library only.

Each deed says what it could do; where it can do nothing it raises OSError, or says nothing. Facts of the host (addresses
where somebody listens, files, a process) come with the arguments, as an attacker might know them.
"""

import ctypes
import errno
import os
import socket
import threading
import time

LIBC = ctypes.CDLL(None, use_errno=True)
MACHINE = os.uname().machine
BAD = ctypes.c_void_p(1)
CHANNEL = 3
HERE = os.getpid()
SCRATCH = "/work"  # where the sandbox has its scratch space


def run(args):
    """The outcome of each deed that `deeds` names."""
    return {name: outcome(DEEDS[name], args) for name in args["deeds"]}


def outcome(deed, args):
    try:
        done = deed(args)
    except OSError as error:
        return {"did": None, "why": errno.errorcode.get(error.errno or 0, str(error))}
    except (MemoryError, RuntimeError, ValueError) as error:
        return {"did": None, "why": f"{type(error).__name__}: {error}"}
    return {"did": done or None, "why": ""}


# network


def to_address(family, kind, key):
    def deed(args):
        with socket.socket(family, kind) as end:
            end.settimeout(1)
            end.connect(args[key] if family == socket.AF_UNIX else tuple(args[key]))
            end.send(b"evil")
        return "sent"

    return deed


def abstract(args):
    with socket.socket(socket.AF_UNIX) as end:
        end.connect("\0" + args["abstract"])
        end.send(b"evil")
    return "sent"


def unix(args):
    with socket.socket(socket.AF_UNIX) as end:
        end.connect(args["host"] + args["unix"])
        end.send(b"evil")
    return "sent"


def name_lookup(args):
    """As a resolver does it: a datagram to a name server."""
    return to_address(socket.AF_INET, socket.SOCK_DGRAM, "udp")(args)


def raw(_args):
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()
    return "made"


def netlink(_args):
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close()
    return "made"


def datagram_pair(_args):
    for end in socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM):
        end.close()
    return "made"


# files


def reading(*paths):
    def deed(args):
        for path in paths:
            for above in ("", args["host"]):
                try:
                    with open(above + path.format(**args), "rb") as file:
                        return file.read(100).decode(errors="replace")
                except OSError:
                    continue
        return None

    return deed


def through_roots(args):
    """The roots of all processes that can be seen."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for way in ("root", "cwd"):
            try:
                with open(f"/proc/{pid}/{way}{args['secret']}", "rb") as file:
                    return file.read(100).decode(errors="replace")
            except OSError:
                continue
    return None


def descriptors(_args):
    """What is open beside the three usual ones and the channel."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        if int(name) > CHANNEL:
            try:
                found.append(os.readlink(f"/proc/self/fd/{name}"))
            except OSError:
                continue
    return [target for target in found if not target.startswith(f"/proc/{HERE}")]


def writing(*places):
    def deed(_args):
        done = []
        for place in places:
            try:
                with open(place, "w") as file:
                    file.write("evil")
                done.append(place)
            except OSError:
                continue
        return done

    return deed


def first_process(_args):
    """Its memory, to write there: it has no limits of its own, and may execute."""
    try:
        with open("/proc/1/mem", "r+b"):
            return True
    except OSError:
        return None


def attributes(_args):
    """Of a file in a tmpfs, whose size does not count them."""
    with open(f"{SCRATCH}/attributed", "w") as file:
        try:
            os.setxattr(file.fileno(), "user.evil", bytes(60_000))
        except OSError:
            return None
    return True


def asynchronous(_args):
    """Requests of which the whole machine has but so many (/proc/sys/fs/aio-max-nr)."""
    number = {"x86_64": 206, "aarch64": 0}[os.uname().machine]
    context = ctypes.c_ulong(0)
    return True if LIBC.syscall(number, 1, ctypes.byref(context)) == 0 else None


def environment(args):
    """Every environment that can be read."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if args["canary"].encode() in file.read():
                    return f"/proc/{pid}"
        except OSError:
            continue
    return None


def listing(place):
    return lambda _args: os.listdir(place)


def opening_to_write(*places):
    def deed(_args):
        done = []
        for place in places:
            try:
                os.close(os.open(place, os.O_WRONLY))
                done.append(place)
            except OSError:
                continue
        return done

    return deed


# the kernel

NUMBERS = {
    "x86_64": {
        "unshare": 272, "setns": 308, "mount": 165, "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "bpf": 321,
        "io_uring_setup": 425, "keyctl": 250, "add_key": 248, "clone3": 435, "userfaultfd": 323, "memfd_create": 319, "shmget": 29,
        "msgget": 68, "semget": 64, "perf_event_open": 298, "open_tree": 428, "fsopen": 430, "kcmp": 312, "personality": 135,
        "name_to_handle_at": 303, "quotactl": 179, "seccomp": 317, "execveat": 322, "mq_open": 240,
    },
    "aarch64": {
        "unshare": 97, "setns": 268, "mount": 40, "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "bpf": 280,
        "io_uring_setup": 425, "keyctl": 219, "add_key": 217, "clone3": 435, "userfaultfd": 282, "memfd_create": 279, "shmget": 194,
        "msgget": 186, "semget": 190, "perf_event_open": 241, "open_tree": 428, "fsopen": 430, "kcmp": 272, "personality": 92,
        "name_to_handle_at": 264, "quotactl": 60, "seccomp": 277, "execveat": 281, "mq_open": 180,
    },
}  # fmt: skip
REFUSALS = (errno.EPERM, errno.ENOSYS)


def call(name, *arguments):
    """A system call that no filter has refused: it worked, or complains of something else."""

    def deed(_args):
        result = LIBC.syscall(ctypes.c_long(NUMBERS[MACHINE][name]), *arguments)
        number = ctypes.get_errno() if result < 0 else 0
        if number in REFUSALS:
            raise OSError(number, name)
        return errno.errorcode.get(number, "worked")

    return deed


def pushing_input(_args):
    """TIOCSTI on what is no terminal: a kernel that gets to see it says ENOTTY."""
    result = LIBC.ioctl(0, 0x5412, ctypes.byref(ctypes.c_char(b"x")))
    number = ctypes.get_errno() if result < 0 else 0
    if number in REFUSALS:
        raise OSError(number, "TIOCSTI")
    return errno.errorcode.get(number, "worked")


def other_gate(_args):
    """The calls of x32, which have numbers of their own."""
    result = LIBC.syscall(ctypes.c_long(0x40000000 | 39))
    number = ctypes.get_errno() if result < 0 else 0
    if number in (errno.EPERM, errno.ENOSYS):
        raise OSError(number, "x32")
    return "worked"


# processes


def forking(_args):
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return "forked"


def threading_(_args):
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
    return "started"


def fork_bomb(args):
    """As many as it can be, up to a number that a machine bears."""
    children = []
    try:
        while len(children) < args["bomb"]:
            child = os.fork()
            if child == 0:
                time.sleep(60)
                os._exit(0)
            children.append(child)
    except OSError:
        pass
    for child in children:
        os.kill(child, 9)
        os.waitpid(child, 0)
    return len(children)


def thread_bomb(args):
    stop = threading.Event()
    threads = []
    threading.stack_size(1 << 16)
    try:
        while len(threads) < args["bomb"]:
            thread = threading.Thread(target=stop.wait)
            thread.start()
            threads.append(thread)
    except RuntimeError:
        pass
    stop.set()
    for thread in threads:
        thread.join()
    return len(threads)


def leaving_a_grandchild(args):
    """In a session and group of its own, without anything that holds it."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, 64)
            os.execv("/usr/bin/sleep", ["sleep", args["marker"]])
        os._exit(0)
    return "left"


def executing(_args):
    """It does not come back where it works."""
    os.execv("/usr/bin/true", ["true"])


def signalling(args):
    os.kill(args["victim"], 15)
    return "sent"


def signalling_above(_args):
    """Where it works, nobody is left to say so."""
    os.kill(os.getppid(), 9)
    time.sleep(0.1)


# what there is only so much of


def memory(args):
    return len(bytearray(args["bytes"]))


def shared_memory(args):
    import mmap

    with mmap.mmap(-1, args["bytes"]) as shared:
        return len(shared)


def disk(args):
    written = 0
    try:
        for number in range(100):
            with open(f"{SCRATCH}/{number}", "wb") as file:
                for _ in range(16):
                    written += file.write(bytes(1 << 18))
                    file.flush()
                    if written >= args["bytes"]:
                        return written
    except OSError:
        pass
    return written


def empty_files(args):
    """Each costs memory of the kernel's."""
    for number in range(args["files"]):
        os.close(os.open(f"{SCRATCH}/{number}", os.O_CREAT | os.O_WRONLY))
    time.sleep(args["rest_s"])
    return args["files"]


def computing(_args):
    import signal

    signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    while True:
        pass


def plainly_computing(_args):
    while True:
        pass


def computing_in_turns(_args):
    """One process after the other, each with a count of its own."""
    while True:
        if os.fork() == 0:
            until = time.process_time() + 0.6
            while time.process_time() < until:
                pass
            os._exit(0)
        os.wait()


def flooding(args):
    for _ in range(args["bytes"] >> 16):
        os.write(1, b"x" * (1 << 16))
    return "all of it was taken"


def sleeping(_args):
    import signal

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(600)


def shouting(args):
    """Bytes of its own on the channel."""
    os.write(CHANNEL, bytes.fromhex(args["frame"]))
    time.sleep(600)


def handing_over(_args):
    """A descriptor, along with a byte, to whoever reads."""
    with socket.socket(fileno=os.dup(CHANNEL)) as end:
        socket.send_fds(end, [b"\0"], [0, 1, 2])
    time.sleep(600)


DEEDS = {
    "tcp": to_address(socket.AF_INET, socket.SOCK_STREAM, "tcp"),
    "tcp6": to_address(socket.AF_INET6, socket.SOCK_STREAM, "tcp6"),
    "dns": name_lookup,
    "unix": unix,
    "abstract": abstract,
    "raw": raw,
    "netlink": netlink,
    "datagram pair": datagram_pair,
    "home": reading("{secret}"),
    "shadow": reading("/etc/shadow", "/etc/passwd"),
    "dots": reading(
        *(
            f"{way}{above}{{secret}}"
            for way in ("/in/../..", f"{SCRATCH}/../../..", "../../..")
            for above in ("", "/host")
        )
    ),
    "roots": through_roots,
    "descriptors": descriptors,
    "environment": environment,
    "write /": writing("/evil", "/lyma/evil", "/agent/evil", "/etc/evil"),
    "write /dev": writing("/dev/evil", "/dev/shm/evil"),
    "write inputs": writing("/in/evil", "/in/file", "/agent/manifest.json", "/lyma/enter.py", "/usr/evil"),
    "proc sys": listing("/proc/sys"),
    "core_pattern": opening_to_write("/proc/sys/kernel/core_pattern"),
    "proc writes": opening_to_write("/proc/sysrq-trigger", "/proc/sys/kernel/modprobe", "/proc/sys/vm/drop_caches"),
    "sys": listing("/sys"),
    "first process": first_process,
    "attributes": attributes,
    "asynchronous": asynchronous,
    "unshare": call("unshare", 0x10000000),
    "setns": call("setns", -1, 0),
    "mount": call("mount", BAD, BAD, BAD, 0, BAD),
    "ptrace": call("ptrace", 0, 0, 0, 0),
    "process_vm_readv": call("process_vm_readv", HERE, 0, 0, 0, 0, 0),
    "process_vm_writev": call("process_vm_writev", HERE, 0, 0, 0, 0, 0),
    "bpf": call("bpf", 0, BAD, 1 << 20),
    "io_uring": call("io_uring_setup", 1, BAD),
    "keyctl": call("keyctl", 0, -3, 0),
    "add_key": call("add_key", BAD, BAD, BAD, 0, -3),
    "clone3": call("clone3", BAD, 0),
    "userfaultfd": call("userfaultfd", 1 << 30),
    "memfd": call("memfd_create", b"evil", 0),
    "shmget": call("shmget", 0, 4096, 0o1600),
    "msgget": call("msgget", 0, 0o1600),
    "semget": call("semget", 0, 1, 0o1600),
    "mq_open": call("mq_open", BAD, 0, 0, 0),
    "perf_event_open": call("perf_event_open", BAD, 0, -1, -1, 0),
    "open_tree": call("open_tree", -1, BAD, 1 << 30),
    "kcmp": call("kcmp", HERE, HERE, 0, 0, 0),
    "personality": call("personality", 0xFFFFFFFF),
    "handles": call("name_to_handle_at", -1, BAD, BAD, BAD, 0),
    "seccomp": call("seccomp", 0, 1, 0),
    "execveat": call("execveat", -1, BAD, 0, 0, 0),
    "TIOCSTI": pushing_input,
    "x32": other_gate,
    "fork": forking,
    "thread": threading_,
    "fork bomb": fork_bomb,
    "thread bomb": thread_bomb,
    "setsid": leaving_a_grandchild,
    "exec": executing,
    "signal": signalling,
    "signal above": signalling_above,
    "memory": memory,
    "shared memory": shared_memory,
    "disk": disk,
    "empty files": empty_files,
    "computing": computing,
    "computing in turns": computing_in_turns,
    "plainly computing": plainly_computing,
    "flooding": flooding,
    "sleeping": sleeping,
    "shouting": shouting,
    "handing over": handing_over,
}
