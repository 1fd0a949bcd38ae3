"""A home of Lyma's with keys in it, providers that give them away, and every place where one could come to light."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from typing import TYPE_CHECKING, Self

from tests.processes import Watch
from tests.pseudo_terminal import PseudoTerminal
from tests.raw_client import RawClient
from tests.routing import FORMATS
from tests.security.canary import Canary, gives_away
from tests.security.echo import REFUSALS, SILENT, TALKERS, Echo
from tests.stub_provider import StubProvider

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

LYMA = (sys.executable, "-m", "lyma_server")
SERVER = (sys.executable, "-c", "from lyma_server.entry import server; server()", "--stdio")
OPEN_LYMA = (sys.executable, "-m", "tests.security.unredacted", "lyma")
OPEN_SERVER = (sys.executable, "-m", "tests.security.unredacted", "lyma-server")

INLINE = Canary("sk-proj-Zq7Wc4-TmB2vYk9_RfD3xNh8LgJ5sPu6QaE1oHt", "sk-proj-")
VARIABLE = Canary("sk-ant-api03-Vd8Kx2mQ_zR5nTb7-JwLc4YgHs9PfE3uGa6Io", "sk-ant-api03-")
COMMAND = Canary("Mj4+Xb/7=Qw\"9Zk&3Lp%2Ft<Rv>8Hd'6Gc\\5Yn")
"""One that looks different in every encoding, and like no vendor's."""

WAYS = {"inline": INLINE, "env": VARIABLE, "cmd": COMMAND}
SPY = """#!/bin/sh
cat "/proc/$$/cmdline" > "{folder}/$$.words"
cat "/proc/$$/environ" > "{folder}/$$.environment"
exec {program} "$@"
"""


class House:
    """Runs the commands and the server, keeps all that came out, and knows where else to look.

    `apis` are the wire formats: there is each provider once for each. `ways` are those in which the keys are given. `sinks` holds what has been looked into by name; `leaks()` says which of
    them hold a key.
    """

    def __init__(self, root: Path, apis: Sequence[str] = FORMATS, ways: Sequence[str] = tuple(WAYS)) -> None:
        self.canaries = [WAYS[way] for way in ways]
        self.echo = Echo(self.canaries)
        self.stub = StubProvider(self.echo, listing=self.echo.listing)
        self.root, self.apis, self.ways = root, apis, ways
        self.home, self.work, self.temporary, self.spied = (root / name for name in ("home", "work", "tmp", "spied"))
        self.watch = Watch(self.home, self.temporary, self.spied)
        self.sinks: dict[str, bytes] = {}
        self.stderr = ""

    def __enter__(self) -> Self:
        for folder in (self.home, self.work, self.temporary, self.spied, self.root / "bin"):
            folder.mkdir(mode=0o700, parents=True)
        keys = "".join(f"{canary.value}\n" for canary in self.canaries)
        (self.work / "keys.txt").write_text(keys)
        (self.root / "key-of-the-command").write_text(COMMAND.value)
        self.stub.__enter__()
        self._write_config()
        subprocess.run(["git", "init", "--quiet", str(self.work)], check=True)
        self._post_spies("rg", "git")
        self.watch.__enter__()
        return self

    def __exit__(self, *problem: object) -> None:
        self.watch.__exit__(*problem)
        self.stub.__exit__(*problem)
        self._gather()

    @property
    def env(self) -> dict[str, str]:
        return {
            **os.environ,
            "LYMA_HOME": str(self.home),
            "TMPDIR": str(self.temporary),
            "PATH": f"{self.root / 'bin'}:{os.environ['PATH']}",
            "CANARY_VARIABLE": VARIABLE.value if "env" in self.ways else "",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def providers(self, *echoes: str) -> list[str]:
        """The names of those that do as `echoes` say, in this order."""
        return [name for echo in echoes for name, _ in self._named(echo)]

    def _named(self, echo: str) -> list[tuple[str, str]]:
        return [(f"{echo}-{api}", api) for api in self.apis]

    def run(self, name: str, *arguments: str, stdin: str = "", command: Sequence[str] = LYMA, **env: str) -> int:
        """Run `lyma` with pipes and keep what it says under `name`; the exit code."""
        done = subprocess.run(
            [*command, *arguments],
            input=stdin.encode(),
            capture_output=True,
            timeout=60,
            check=False,
            cwd=self.work,
            env={**self.env, **env},
        )
        self.sinks[f"{name}: stdout"] = done.stdout
        self.sinks[f"{name}: stderr"] = done.stderr
        self.stderr = done.stderr.decode()
        return done.returncode

    def show(self, name: str, *arguments: str, command: Sequence[str] = LYMA) -> int:
        """The same at a terminal."""
        with PseudoTerminal(*arguments, env=self.env, command=command, cwd=self.work) as screen:
            code = screen.leave(60)
            self.sinks[f"{name}: screen"] = screen.shown.encode()
        return code

    def serve(self, command: Sequence[str] = SERVER, order: str = "") -> RawClient:
        """A server, initialized, with the folder as its workspace. Give it to `heard` before it is let go."""
        client = RawClient(command, env={**self.env, "LYMA_ORDER": order})
        client.answers["window/showDocument"] = lambda _params: {"success": True}
        client.initialize(
            {"window": {"showDocument": {"support": True}, "workDoneProgress": True}},
            workspaceFolders=[{"uri": self.work.as_uri(), "name": "work"}],
        )
        return client

    def heard(self, client: RawClient) -> None:
        """Keep all that a server sent."""
        self.sinks["server: wire"] = "\n".join(json.dumps(m, ensure_ascii=False) for m in client.messages).encode()
        self.sinks["server: stderr"] = bytes(client.errors)

    def leaks(self) -> list[str]:
        """The sinks that hold a key."""
        return sorted(
            name for name, data in self.sinks.items() if any(gives_away(data, canary) for canary in self.canaries)
        )

    def _gather(self) -> None:
        for path, contents in self.watch.files.items():
            if path != self.home / "config.toml":
                self.sinks[f"file {path.relative_to(self.root)}"] = b"\n".join(contents)
        for given in self.watch.given:
            self.sinks[f"words of {given.pid}"] = given.words
            if given.parent != os.getpid():  # what we start ourselves is given the variable by us
                self.sinks[f"variables of {given.pid} {given.words[:80]!r}"] = given.environment
        for number, request in enumerate((*self.stub.requests, *self.stub.listings), 1):
            headers = {
                name: text for name, text in request.headers.items() if name not in ("authorization", "x-api-key")
            }
            self.sinks[f"request {number}"] = f"{request.path} {headers} ".encode() + request.raw

    def _write_config(self) -> None:
        values = {
            "inline": INLINE.value,
            "env": "env:CANARY_VARIABLE",
            "cmd": f"cmd:cat {self.root}/key-of-the-command && sleep 0.25",  # long enough to be seen
        }
        keys = json.dumps([values[way] for way in self.ways])
        tables = [
            f'[providers.{name}]\napi = "{api}"\nbase_url = "{self.stub.url}/{name}{"/v1" if api == "openai" else ""}"\n'
            f'model = "stub-model"\nkeys = {keys}\n'
            for echo in (*REFUSALS, *TALKERS, SILENT)
            for name, api in self._named(echo)
        ]
        config = self.home / "config.toml"
        order = json.dumps(self.providers(*REFUSALS, *TALKERS, SILENT))
        config.write_text(f"order = {order}\n" + "\n".join(tables))
        config.chmod(0o600)

    def _post_spies(self, *names: str) -> None:
        """Helpers may live for a millisecond only: these write down what they were given before they begin."""
        for name in names:
            if program := shutil.which(name):
                spy = self.root / "bin" / name
                spy.write_text(SPY.format(folder=self.spied, program=program))
                spy.chmod(stat.S_IRWXU)
