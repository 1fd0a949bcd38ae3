"""Processes are started in `isolation/` and nowhere else, held over the syntax trees."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "lyma_server"
HOME = PACKAGE / "isolation"

MODULES = {"subprocess", "multiprocessing", "pty", "_posixsubprocess", "runpy"}
STARTERS = {
    "os": ("exec", "spawn", "posix_spawn", "fork", "system", "popen", "startfile"),
    "posix": ("exec", "spawn", "posix_spawn", "fork", "system", "popen"),
    "asyncio": ("create_subprocess", "subprocess", "SubprocessProtocol"),
    "concurrent": ("futures.ProcessPoolExecutor", "futures.process"),
}
"""By module, how the names begin that start a process."""

ANYWHERE = (
    "create_subprocess_",
    "subprocess_exec",
    "subprocess_shell",
    "run_in_process",
    "ProcessPoolExecutor",
    "execve",
)
"""Attributes that mean it whatever they hang on, such as an event loop."""


def findings(source: str) -> list[str]:
    """The line and name of each way to start a process."""
    found = []
    for node in ast.walk(ast.parse(source)):
        found += [f"{getattr(node, 'lineno', 0)} {name}" for name in names(node) if starts_a_process(name)]
    return found


def names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module}.{alias.name}" for alias in node.names] if node.module and not node.level else []
    if isinstance(node, ast.Attribute):
        return [ast.unparse(node)]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
        return names_in_words(node)
    return []


def names_in_words(call: ast.Call) -> list[str]:
    """`__import__("subprocess")`, `import_module("pty")` and `getattr(os, "fork")`."""
    words = [word.value for word in call.args if isinstance(word, ast.Constant) and isinstance(word.value, str)]
    function = ast.unparse(call.func).rpartition(".")[2]
    if function in {"__import__", "import_module"}:
        return words
    if function == "getattr" and call.args:
        return [f"{ast.unparse(call.args[0])}.{word}" for word in words]
    return []


def starts_a_process(name: str) -> bool:
    module, _, rest = name.partition(".")
    last = name.rpartition(".")[2]
    if module in MODULES or last.startswith(ANYWHERE):
        return True
    return bool(rest) and rest.startswith(STARTERS.get(module) or ("\0",))


@pytest.mark.parametrize(
    "sample",
    [
        "import subprocess",
        "import subprocess as quiet",
        "from subprocess import run",
        "def f():\n    import subprocess",
        "import os\nos.execv('/bin/sh', [])",
        "import os\nos.spawnl(0, '')",
        "import os\nos.posix_spawn('', [], {})",
        "import os\nos.fork()",
        "import os\nos.forkpty()",
        "import os\nos.system('')",
        "import os\nos.popen('')",
        "import os\nrun = os.system",
        "from os import system",
        "from os import execvp as go",
        "import os\ngetattr(os, 'system')",
        "import posix\nposix.fork()",
        "import pty",
        "from pty import spawn",
        "import multiprocessing",
        "from multiprocessing.pool import Pool",
        "import asyncio\nasyncio.create_subprocess_exec('')",
        "from asyncio import create_subprocess_shell",
        "import asyncio.subprocess",
        "from asyncio import subprocess",
        "loop.subprocess_exec(None, '')",
        "from concurrent.futures import ProcessPoolExecutor",
        "import concurrent.futures\nconcurrent.futures.ProcessPoolExecutor()",
        "__import__('subprocess')",
        "from importlib import import_module\nimport_module('pty')",
        "import importlib\nimportlib.import_module('multiprocessing')",
        "import _posixsubprocess",
        "import runpy",
    ],
)
def test_every_way_to_start_a_process_is_seen(sample):
    assert findings(sample)


@pytest.mark.parametrize(
    "sample",
    [
        "import os\nos.path.join('a')",
        "from lyma_server.isolation.process import run_helper",
        "import asyncio\nasyncio.create_task(x)",
        "system = 1",
        "re.compile('').search('')",
        "import signal\nos.kill(1, 0)",
    ],
)
def test_other_things_are_not_taken_for_it(sample):
    assert findings(sample) == []


def test_only_isolation_starts_processes():
    elsewhere = [path for path in PACKAGE.rglob("*.py") if HOME not in path.parents]
    assert len(elsewhere) > 50
    guilty = {str(path.relative_to(PACKAGE)): findings(path.read_text(encoding="utf-8")) for path in elsewhere}
    assert {path: found for path, found in guilty.items() if found} == {}


def test_no_program_is_started_through_a_shell():
    """`shell=True` appears nowhere; the one explicit shell runs the `cmd:` keys of the user's own configuration."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            assert not (isinstance(node, ast.keyword) and node.arg in {"shell", "preexec_fn"}), f"{path}:{node.lineno}"
