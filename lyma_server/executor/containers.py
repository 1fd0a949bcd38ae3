"""Commands inside containers: folders of the machine appear there under other names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lyma_server.executor.options import Options, read_options

if TYPE_CHECKING:
    from lyma_server.executor.evaluation import Machine
    from lyma_server.executor.world import Outcome, World

_VALUES = (
    "-v", "--volume", "--mount", "-w", "--workdir", "--entrypoint", "-e", "--env", "--env-file", "-p", "--publish", "-u", "--user",
    "--name", "--network", "--net", "-h", "--hostname", "-l", "--label", "--platform", "-m", "--memory", "--cpus", "--add-host",
    "--restart", "--device", "--gpus", "--shm-size", "--ulimit", "--cap-add", "--cap-drop", "--security-opt", "--tmpfs", "--volumes-from",
    "--pull", "--dns", "--link", "--log-driver", "--log-opt", "--pid", "--ipc", "--expose", "--userns", "-f", "--file", "--profile",
    "--project-name", "--index", "-c", "--context", "-H", "--host", "--cidfile",
)  # fmt: skip
_ELSEWHERE = "/<container>"


def run(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome | None:
    """`docker run`, `docker exec`, `docker compose run` and their like."""
    words = list(argv[1:])
    while words and words[0] not in ("run", "exec", "create"):
        word = words.pop(0)
        if word in _VALUES and words:
            words.pop(0)
        elif not word.startswith("-") and word not in ("container", "compose"):
            return None
    if not words:
        return None
    options = read_options(words[1:], _VALUES, permute=False)
    inner = _inside(world, options)
    command = options.operands[1:]
    entry = options.value("--entrypoint")
    if entry:
        command = (entry, *command)
    if not command:
        return None
    return _execute(machine, inner, command)


def _execute(machine: Machine, world: World, command: tuple[str, ...]) -> Outcome:
    from lyma_server.executor.calls import execute

    return execute(machine, world, command, plain=True)


def _inside(world: World, options: Options) -> World:
    """The state inside the container: its mounts, its folder, root's home."""
    inner = world.fork()
    inner.mounts = (
        *world.mounts,
        *filter(None, (_mount(world, text) for text in options.all_values("-v", "--volume", "--mount"))),
    )
    inner.cwd = (options.value("-w", "--workdir") or _ELSEWHERE,)
    inner.set("HOME", ("/root",))
    return inner


def _mount(world: World, text: str) -> tuple[str, str] | None:
    """`(folder inside, folder outside)`, None for a named volume."""
    if "=" in text:
        fields = dict(field.partition("=")[::2] for field in text.split(","))
        outside = fields.get("source") or fields.get("src") or ""
        inside = fields.get("target") or fields.get("dst") or fields.get("destination") or ""
    else:
        outside, _, rest = text.partition(":")
        inside = rest.split(":")[0]
    if not inside or not outside.startswith(("/", ".", "~")):
        return None
    return inside.rstrip("/") or "/", world.locate(outside)


def kubectl(machine: Machine, world: World, argv: tuple[str, ...]) -> Outcome | None:
    """`kubectl exec pod -- command`."""
    if "exec" not in argv and "run" not in argv and "debug" not in argv:
        return None
    if "--" not in argv:
        return None
    inner = world.fork()
    inner.cwd = (_ELSEWHERE,)
    command = argv[argv.index("--") + 1 :]
    return _execute(machine, inner, command) if command else None
