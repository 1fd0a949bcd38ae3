"""What archivers would do to files: what they take in, take away and unpack."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lyma_server.executor.options import read_options
from lyma_server.executor.searching import ANYWHERE

if TYPE_CHECKING:
    from lyma_server.executor.effects import Found


def tar(arguments: tuple[str, ...]) -> Found:
    first = arguments[0].lstrip("-") if arguments else ""
    words = ("-" + arguments[0], *arguments[1:]) if arguments and not arguments[0].startswith("-") else arguments
    options = read_options(
        words,
        (
            "-f",
            "-C",
            "-T",
            "-X",
            "--file",
            "--directory",
            "--files-from",
            "--exclude",
            "-I",
            "--to-command",
            "--checkpoint-action",
        ),
    )
    creates = options.has("-c", "-r", "-u", "--create", "--append", "--update") or "c" in first
    if creates and (archive := options.value("-f", "--file")):
        yield "write", archive
    folder = options.value("-C", "--directory") or "."
    if options.has("-x", "--extract", "--get") or "x" in first:
        yield "fill", folder
    if creates and options.has("--remove-files") and options.value("-T", "--files-from"):
        yield "move", ANYWHERE
    for name in options.operands if creates else ():
        operand = name if name.startswith("/") or folder == "." else f"{folder.rstrip('/')}/{name}"
        yield ("move" if options.has("--remove-files") else "read"), operand


def zipped(arguments: tuple[str, ...]) -> Found:
    moves = any(re.fullmatch(r"-[a-zA-Z0-9]*m[a-zA-Z0-9]*|-sdel|--move", word) for word in arguments)
    if moves and "-@" in arguments:
        yield "move", ANYWHERE
    for operand in read_options(arguments, ("-x", "-i", "-b", "-n"), single_dash=True).operands[1:]:
        yield ("move" if moves else "read"), operand


def unzip(arguments: tuple[str, ...]) -> Found:
    options = read_options(arguments, ("-d", "-x", "-P"))
    yield from (("read", archive) for archive in options.operands[:1])
    yield "fill", options.value("-d") or "."
