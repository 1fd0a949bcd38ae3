"""Decoders: known text is decoded, of unknown text only the origin is kept."""

from __future__ import annotations

import base64 as codec
import binascii
from itertools import pairwise
from typing import TYPE_CHECKING

from lyma_server.executor.marks import DECODED, NETWORK, UNKNOWN, is_known, is_plain, taints
from lyma_server.executor.options import read_options
from lyma_server.executor.text_filters import cat

if TYPE_CHECKING:
    from collections.abc import Callable

    from lyma_server.executor.world import World


def _decode(convert: Callable[[str], bytes], text: str) -> str:
    if not is_known(text):
        return DECODED + taints(text)
    try:
        return convert("".join(text.split())).decode("utf-8", "replace").replace("\0", "")
    except (ValueError, binascii.Error):
        return DECODED


def _from_base64(text: str) -> bytes:
    return codec.b64decode(text + "=" * (-len(text) % 4))


def base64(world: World, arguments: tuple[str, ...], stdin: str) -> str | None:
    options = read_options(arguments, ("-w", "--wrap"))
    text = cat(world, options.operands, stdin) if options.operands else stdin
    if options.has("-d", "-D", "--decode"):
        return _decode(_from_base64, text or "")
    return (
        codec.b64encode((text or "").encode()).decode() + "\n"
        if text and is_plain(text)
        else UNKNOWN + taints(text or "")
    )


def base32(world: World, arguments: tuple[str, ...], stdin: str) -> str | None:
    options = read_options(arguments, ("-w",))
    text = cat(world, options.operands, stdin) if options.operands else stdin
    return _decode(codec.b32decode, text or "") if options.has("-d", "--decode") else UNKNOWN


def xxd(world: World, arguments: tuple[str, ...], stdin: str) -> str | None:
    if not any(word.startswith("-") and "r" in word for word in arguments):
        return UNKNOWN
    operands = read_options(arguments, ("-s", "-c", "-l")).operands
    text = cat(world, operands[:1], stdin) if operands else stdin
    return _decode(bytes.fromhex, text or "")


def openssl(world: World, arguments: tuple[str, ...], stdin: str) -> str | None:
    decodes = "-d" in arguments and any(word in ("base64", "-base64", "-a") for word in arguments)
    if not decodes:
        return NETWORK if arguments[:1] == ("s_client",) else (DECODED if "-d" in arguments else UNKNOWN)
    operands = [value for flag, value in pairwise(arguments) if flag == "-in"]
    return _decode(_from_base64, cat(world, tuple(operands), stdin) or "")
