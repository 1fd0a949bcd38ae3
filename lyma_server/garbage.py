"""How often the interpreter looks for garbage that refers to itself.

Start-up keeps nearly all that it makes, so looking through it as often as usual only costs time (a twentieth of a cold
`lyma ask`); never looking leaves some eight MiB of discarded classes behind.
"""

from __future__ import annotations

import gc
from typing import Final

AT_START: Final = (5_000, 50, 50)
USUAL: Final = (700, 10, 10)
"""Those that Python starts with (gc.set_threshold)."""


def collect_rarely() -> None:
    """While a process starts."""
    gc.set_threshold(*AT_START)


def collect_as_usual() -> None:
    """From here on; what is there by now stays for good and is not looked through again."""
    gc.freeze()
    gc.set_threshold(*USUAL)
