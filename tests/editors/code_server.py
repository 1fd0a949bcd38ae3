"""A real VS Code, as npm's code-server serves it, that a script drives in a headless Chromium.

    with CodeServer(tmp_path, settings(stub, home)) as editor:
        editor.drive("ask", prompt="hello")

Each has folders of its own, with the packaged extension installed in an empty profile. `clients/vscode/test/host/` holds
the scripts; CODE_SERVER names the folder where `install_code_server.sh` of that folder has put code-server.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest

from tests.editors.neovim import put_on_path
from tests.editors.real_server import COMMAND
from tests.raw_client import ROOT, environment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CLIENT = ROOT / "clients" / "vscode"
SCRIPTS = CLIENT / "test" / "host"
PATIENCE_S = 90
DRIVE_S = 180
PROFILE = {
    "security.workspace.trust.enabled": False,
    "workbench.startupEditor": "none",
    "workbench.tips.enabled": False,
    "telemetry.telemetryLevel": "off",
    "extensions.ignoreRecommendations": True,
    "extensions.autoCheckUpdates": False,
    "extensions.autoUpdate": False,
    "git.enabled": False,
    "chat.commandCenter.enabled": False,
    "terminal.integrated.gpuAcceleration": "off",
}


def code_server() -> Path:
    place = Path(os.environ.get("CODE_SERVER", "/opt/code-server"))
    entry = place / "node_modules" / "code-server" / "out" / "node" / "entry.js"
    if not entry.is_file():
        pytest.skip(f"code-server is not installed: run {SCRIPTS.relative_to(ROOT)}/install_code_server.sh {place}")
    return entry


def needs_terminal() -> None:
    """Skip where this code-server was installed without what its terminal needs."""
    native = (
        code_server().parents[2] / "lib" / "vscode" / "node_modules" / "node-pty" / "build" / "Release" / "pty.node"
    )
    if not native.is_file():
        pytest.skip(f"code-server has no terminal: run {SCRIPTS.relative_to(ROOT)}/install_code_server.sh again")


def chromium() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("chromium is not installed: run apt-get install chromium")
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class CodeServer:
    def __init__(
        self,
        folder: Path,
        variables: Mapping[str, str],
        *,
        vsix: Path,
        command: Sequence[str] | None = COMMAND,
        profile: Mapping[str, Any] | None = None,
        machine: Mapping[str, Any] | None = None,
    ) -> None:
        """`command` is what stands on the PATH as lyma-server (null: none), `profile` and `machine` are settings."""
        self.entry, self.browser = code_server(), chromium()
        self.folder = folder
        self.workspace = folder / "project"
        self.data, self.extensions = folder / "data", folder / "extensions"
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        for each in (self.workspace, self.data / "User", self.data / "Machine", self.extensions, folder / "home"):
            each.mkdir(parents=True)
        (self.data / "User" / "settings.json").write_text(json.dumps({**PROFILE, **(profile or {})}))
        (self.data / "Machine" / "settings.json").write_text(json.dumps(machine or {}))
        (folder / "code-server.yaml").write_text("")
        self.environment = self._environment(variables, command)
        self._vsix = vsix

    def _environment(self, variables: Mapping[str, str], command: Sequence[str] | None) -> dict[str, str]:
        own = {f"XDG_{name.upper()}_HOME": str(self.folder / name) for name in ("config", "data", "state", "cache")}
        made = environment(**variables, **own, HOME=str(self.folder / "home"), SHELL="/bin/bash")
        if command is None:
            made["PATH"] = ":".join(
                each for each in made["PATH"].split(":") if not (Path(each) / "lyma-server").exists()
            )
        else:
            made["PATH"] = f"{put_on_path(self.folder, command)}:{made['PATH']}"
        profile = self.folder / "home" / ".profile"  # VS Code asks a login shell for the variables
        profile.write_text(f"export PATH='{made['PATH']}'\n")
        return made

    def _arguments(self, *more: str) -> list[str]:
        folders = [
            "--config", str(self.folder / "code-server.yaml"),
            "--user-data-dir", str(self.data),
            "--extensions-dir", str(self.extensions),
        ]  # fmt: skip
        return ["node", str(self.entry), *folders, "--disable-telemetry", "--disable-update-check", *more]

    def __enter__(self) -> Self:
        installing = self._arguments("--install-extension", str(self._vsix))
        done = subprocess.run(installing, env=self.environment, capture_output=True, timeout=PATIENCE_S, check=False)
        assert done.returncode == 0, (done.stdout + done.stderr).decode()
        serving = self._arguments("--auth", "none", "--bind-addr", f"127.0.0.1:{self.port}")
        with (self.folder / "code-server.log").open("wb") as log:
            self.process = subprocess.Popen(
                serving, env=self.environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )
        self._wait_until_it_answers()
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def write(self, name: str, text: str) -> Path:
        path = self.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def drive(self, scenario: str, **given: Any) -> Any:
        """Run a scenario; what it returns. A failure shows what the script says and where its picture is."""
        words = {"url": self.url, "folder": str(self.workspace), "browser": self.browser, "shots": str(self.folder)}
        done = subprocess.run(
            ["node", str(SCRIPTS / "drive.mjs"), scenario, json.dumps({**words, **given})],
            capture_output=True,
            timeout=DRIVE_S,
            check=False,
            text=True,
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\npicture: {self.folder}/failed.png"
        return json.loads(done.stdout.splitlines()[-1])

    def _wait_until_it_answers(self) -> None:
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            assert self.process is not None
            assert self.process.poll() is None, (self.folder / "code-server.log").read_text()
            try:
                with urllib.request.urlopen(f"{self.url}/healthz", timeout=5):
                    return
            except OSError:
                time.sleep(0.05)
        pytest.fail((self.folder / "code-server.log").read_text())
