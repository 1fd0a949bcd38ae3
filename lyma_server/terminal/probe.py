"""Whether a provider can be asked: its list of models costs nothing and needs a key that works."""

from __future__ import annotations

import os

from lyma_server.errors import LymaError


async def probe(provider: str) -> str | None:
    """Ask for the models of a configured provider. Returns the sentence that says what is wrong, null if nothing is."""
    from lyma_server.compose import build_core, usable

    try:
        core = build_core(os.environ, {"order": provider})
        if not usable(core.keys[provider]):
            return "; ".join(key.complaint for key in core.keys[provider])
        try:
            result = await core.models(provider)
        finally:
            await core.close()
    except LymaError as error:
        return error.message
    return result.failures[0].message if result.failures else None
