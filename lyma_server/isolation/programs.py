"""What the head of a file says of the program in it, as the kernel reads it."""

from __future__ import annotations

import os
import stat
import struct
from typing import Final

HEAD: Final = 4096
"""Bytes; a linker puts the notes of a program there."""

SCRIPT_LINE: Final = 255
"""Of a script the kernel reads so many bytes (BINPRM_BUF_SIZE less one)."""

ELF: Final = b"\x7fELF"
BUILD_ID: Final = 3
PROGRAM_NOTE: Final = 4
LONGEST_NOTE: Final = 4096


class NotAProgram(OSError):
    """No regular file, so the kernel will not execute it."""


def read_head(file: int, status: os.stat_result) -> bytes:
    """The first bytes of what an O_PATH descriptor with this `status` stands for.

    They are never remembered: a file that is mapped into memory changes without any sign of it. Raises NotAProgram, or OSError
    where it cannot be read.
    """
    if not stat.S_ISREG(status.st_mode):
        raise NotAProgram
    contents = os.open(f"/proc/self/fd/{file}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(contents, HEAD, 0)
    finally:
        os.close(contents)


def interpreter(head: bytes) -> tuple[str, ...]:
    """The interpreter of a script and its one argument, if it has one; empty for what is no script (fs/binfmt_script.c)."""
    if not head.startswith(b"#!"):
        return ()
    line = head[2:SCRIPT_LINE].partition(b"\n")[0].partition(b"\0")[0].strip(b" \t")
    words = line.replace(b"\t", b" ").split(b" ", 1)
    return tuple(os.fsdecode(word.strip(b" \t")) for word in (words[0], line[len(words[0]) :]) if word.strip(b" \t"))


def build_id(head: bytes) -> bytes:
    """The linker's name for a build of a program: a copy keeps it, with or without something added. Empty for none.

    It stands in a note of the ELF file (the System V ABI, "Note Section"), in 64 or 32 bits, of either byte order.
    """
    if not head.startswith(ELF) or len(head) < 64:
        return b""
    order = "<" if head[5] == 1 else ">"
    wide = head[4] == 2
    try:
        for kind, offset, size in _segments(head, order, wide=wide):
            if kind == PROGRAM_NOTE and size <= LONGEST_NOTE:
                found = _build_id_in(head[offset : offset + size], order)
                if found:
                    return found
    except struct.error:
        pass
    return b""


def _segments(head: bytes, order: str, *, wide: bool) -> list[tuple[int, int, int]]:
    """Kind, offset and size of each segment that the head lists."""
    table, count_at, row = (("Q", 32, 54), 56, "IIQQQQ") if wide else (("I", 28, 42), 44, "IIIIII")
    word, start_at, size_at = table
    (start,) = struct.unpack_from(order + word, head, start_at)
    (size,) = struct.unpack_from(order + "H", head, size_at)
    (count,) = struct.unpack_from(order + "H", head, count_at)
    found = []
    for number in range(min(count, 64)):
        fields = struct.unpack_from(order + row, head, start + number * size)
        found.append((fields[0], fields[2], fields[5]) if wide else (fields[0], fields[1], fields[4]))
    return found


def _build_id_in(notes: bytes, order: str) -> bytes:
    at = 0
    while at + 12 <= len(notes):
        name_size, size, kind = struct.unpack_from(order + "III", notes, at)
        name_at = at + 12
        content_at = name_at + (name_size + 3) // 4 * 4
        if kind == BUILD_ID and notes[name_at : name_at + name_size] == b"GNU\0":
            return notes[content_at : content_at + size]
        at = content_at + (size + 3) // 4 * 4
    return b""
