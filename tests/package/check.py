"""Build wheel and sdist, let twine check them, install each with pip and with pipx, and try what was installed.

Run by `make package` with an environment that has build, twine and pipx. The standard library only.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "dist"
SUITE = (
    "tests/unit/test_turn.py", "tests/unit/test_tools_files.py", "tests/unit/test_state.py", "tests/unit/test_process.py",
    "tests/unit/test_factory_store.py", "tests/protocol/test_real_server.py", "tests/protocol/test_rpc_faults.py",
    "tests/e2e/test_terminal_main.py", "tests/e2e/test_terminal_ask.py", "tests/e2e/test_exec.py", "tests/security/test_guard.py",
)  # fmt: skip
"""Of each layer something that starts processes, reads files of the package, or is a face."""

LARGEST_WHEEL = 2 << 20
"""Bytes."""

IN_SDIST = (
    "Makefile",
    "SECURITY.md",
    "requirements/development.txt",
    "clients/neovim/plugin/lyma.lua",
    "tests/conftest.py",
)
"""Of each part that `make test` needs, or that a document leads to."""


def main() -> None:
    """Raises CalledProcessError or AssertionError at the first thing that is not as it should be."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", DIST, ROOT)
    [wheel], [sdist] = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist)
    assert wheel.stat().st_size < LARGEST_WHEEL, f"the wheel has {wheel.stat().st_size} bytes"
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert held.issuperset(IN_SDIST), set(IN_SDIST) - held
    with tempfile.TemporaryDirectory(prefix="lyma-package-", dir="/var/tmp") as folder:
        place = Path(folder)
        place.chmod(0o755)  # a plain user must be able to enter it
        for package in (wheel, sdist):
            try_installed(install(place / package.suffix[1:], package), place)
        try_installed(install_by_pipx(place, wheel), place)
        run_suite(place / "whl", place)
    print("the packages hold")


def install(folder: Path, package: Path) -> Path:
    """The programs of a fresh environment that has nothing else."""
    venv.create(folder, with_pip=True)
    run(folder / "bin/pip", "install", "--quiet", "--disable-pip-version-check", package)
    return folder / "bin"


def install_by_pipx(place: Path, wheel: Path) -> Path:
    programs = place / "pipx-bin"
    env = {"PIPX_HOME": str(place / "pipx"), "PIPX_BIN_DIR": str(programs)}
    run(sys.executable, "-m", "pipx", "install", "--quiet", wheel, env=env)
    return programs


def try_installed(programs: Path, place: Path) -> None:
    """What a person would try first, from a folder of their own and with an empty home."""
    work = Path(tempfile.mkdtemp(dir=place))
    lyma, env = programs / "lyma", {"HOME": str(work / "home"), "LYMA_HOME": str(work / "home/.lyma")}
    assert output(lyma, "--version", cwd=work, env=env).startswith("lyma ")
    assert output(lyma, "check", "ls -l", cwd=work, env=env) == "allow\n"
    assert output(lyma, "check", "rm -rf /", cwd=work, env=env, status=1).startswith("block")
    assert "lyma/ask" in output(lyma, "schema", "--json", cwd=work, env=env)
    project = work / "project"
    project.mkdir()
    assert output(lyma, "exec", "echo ran", cwd=project, env=env) == "ran\n"
    output(lyma, "draft-agent", "--from-template", "greeter", cwd=project, env=env)
    assert "sha256:" in output(lyma, "compile-agent", ".lyma/agents/greeter", cwd=project, env=env)
    assert output(programs / "lyma-server", "--version", cwd=work, env=env).startswith("lyma")


def run_suite(environment: Path, place: Path) -> None:
    """The tests against what is installed: they are copied away from the tree, so that it cannot be imported."""
    away = place / "away"
    shutil.copytree(ROOT / "tests", away / "tests")
    for name in ("pyproject.toml", "protocol.md", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"):
        shutil.copy2(ROOT / name, away / name)
    for name in ("docs", "examples", "bench", "clients"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, away / name, ignore=shutil.ignore_patterns("node_modules", "dist"))
    pip, python = environment / "bin/pip", environment / "bin/python"
    run(pip, "install", "--quiet", "--disable-pip-version-check", "-r", ROOT / "requirements/development.txt")
    where = output(python, "-c", "import lyma_server; print(lyma_server.__file__)", cwd=away)
    assert where.startswith(str(environment)), where
    run(python, "-m", "pytest", "-q", "-m", "not full", *SUITE, cwd=away)


def run(*words: object, cwd: Path = ROOT, env: dict[str, str] | None = None) -> None:
    print("+", *words, flush=True)
    subprocess.run([str(word) for word in words], cwd=cwd, env={**os.environ, **(env or {})}, check=True)


def output(*words: object, cwd: Path, env: dict[str, str] | None = None, status: int = 0) -> str:
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, env={**os.environ, **(env or {})}, capture_output=True, text=True
    )
    assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr)
    return done.stdout


if __name__ == "__main__":
    main()
