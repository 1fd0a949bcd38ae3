"""Importing an SDK: a second of work and tens of megabytes, so once, when needed, and never on the event loop."""

from __future__ import annotations

import asyncio
import importlib
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

# Both SDKs share dependencies; imported at once from two threads they would wait for each other's modules.
_importing = threading.Lock()


def _import(names: tuple[str, ...]) -> list[ModuleType]:
    with _importing:
        return [importlib.import_module(name) for name in names]


async def import_in_thread(*names: str) -> list[ModuleType]:
    """The modules of these names, imported in a thread."""
    return await asyncio.to_thread(_import, names)
