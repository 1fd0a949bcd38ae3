"""Importing an SDK: a second of work and tens of megabytes, so once, when needed, and never on the event loop."""

from __future__ import annotations

import asyncio
import importlib
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import ModuleType

THREAD: Final = "import"
"""The name of the threads that import, so that whoever ends the process knows of them."""

# Both SDKs share dependencies; imported at once from two threads they would wait for each other's modules.
_importing = threading.Lock()


def _import(names: tuple[str, ...]) -> list[ModuleType]:
    with _importing:
        return [importlib.import_module(name) for name in names]


async def import_in_thread(*names: str) -> list[ModuleType]:
    """The modules of these names, imported in a thread of its own: the loop's threads are waited for when it ends, and
    who stops in the middle of an import wants to be gone.
    """
    loop = asyncio.get_running_loop()
    imported: asyncio.Future[list[ModuleType]] = loop.create_future()

    def settle(modules: list[ModuleType] | None, problem: BaseException | None) -> None:
        if imported.cancelled():
            return
        if problem is None:
            imported.set_result(modules or [])
        else:
            imported.set_exception(problem)

    def work() -> None:
        modules, problem = None, None
        try:
            modules = _import(names)
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            problem = error
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, modules, problem)

    threading.Thread(target=work, name=THREAD, daemon=True).start()
    return await imported
