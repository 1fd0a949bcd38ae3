"""Reads the strings that another process has in its memory."""

from __future__ import annotations

import errno
import os
import struct
from typing import Final

PAGE: Final = 4096
POINTER: Final = struct.calcsize("P")
STRING_LIMIT: Final = 1 << 17
"""The kernel's own limit for one word (MAX_ARG_STRLEN)."""

AT_ONCE_LIMIT: Final = 1 << 18
TOTAL_LIMIT: Final = 8 << 20
"""More than the kernel takes for all words together."""


def read_string(memory: int, address: int) -> str:
    """The string at `address`. Raises OSError (EFAULT, ENAMETOOLONG) as the kernel would."""
    return os.fsdecode(_bytes_at(memory, address))


def read_strings(memory: int, address: int) -> tuple[str, ...]:
    """An array of strings that ends with a null pointer; a null `address` is an empty one.

    Its strings usually lie together, so they are read at once.
    """
    if not address:
        return ()
    pointers = _pointers(memory, address)
    if not pointers:
        return ()
    low, high = min(pointers), max(pointers)
    block = _read(memory, low, high - low + PAGE) if high - low < AT_ONCE_LIMIT else b""
    return tuple(os.fsdecode(_word(memory, block, pointer, pointer - low)) for pointer in pointers)


def _pointers(memory: int, address: int) -> list[int]:
    pointers: list[int] = []
    while len(pointers) * POINTER < TOTAL_LIMIT:
        size = PAGE - address % PAGE or PAGE
        block = _read(memory, address, size - size % POINTER or POINTER)
        for (pointer,) in struct.iter_unpack("P", block[: len(block) - len(block) % POINTER]):
            if not pointer:
                return pointers
            pointers.append(pointer)
        address += len(block)
    raise OSError(errno.E2BIG, os.strerror(errno.E2BIG))


def _word(memory: int, block: bytes, address: int, offset: int) -> bytes:
    end = block.find(b"\0", offset)
    return block[offset:end] if end >= 0 else _bytes_at(memory, address)


def _bytes_at(memory: int, address: int) -> bytes:
    found = bytearray()
    while len(found) <= STRING_LIMIT:
        block = _read(memory, address, PAGE - address % PAGE)
        end = block.find(b"\0")
        if end >= 0:
            return bytes(found + block[:end])
        found += block
        address += len(block)
    raise OSError(errno.E2BIG, os.strerror(errno.E2BIG))


def _read(memory: int, address: int, size: int) -> bytes:
    """At least one byte. Raises OSError (EFAULT) where nothing can be read."""
    try:
        block = os.pread(memory, size, address)
    except (OSError, OverflowError) as error:
        raise OSError(errno.EFAULT, os.strerror(errno.EFAULT)) from error
    if not block:
        raise OSError(errno.EFAULT, os.strerror(errno.EFAULT))
    return block
