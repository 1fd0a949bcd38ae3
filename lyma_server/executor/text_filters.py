"""Filters of text, followed where they are simple: what `rev`, `tr`, `cut` or a plain `sed` make of their input."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from lyma_server.executor.escapes import decode_format
from lyma_server.executor.marks import (
    ENVIRONMENT,
    NETWORK,
    OURSELVES,
    SOMETHING,
    UNKNOWN,
    has_pattern,
    is_known,
    is_plain,
)
from lyma_server.executor.options import read_options

if TYPE_CHECKING:
    from lyma_server.executor.world import World


def cat(world: World, arguments: tuple[str, ...], stdin: str) -> str | None:
    operands = read_options(arguments).operands or ("-",)
    parts: list[str] = []
    for operand in operands:
        if operand in ("-", "/dev/stdin"):
            parts.append(stdin)
        elif operand.startswith("/proc/") and operand.endswith("/environ"):
            parts.append(ENVIRONMENT)
        elif operand.startswith(("/dev/tcp/", "/dev/udp/")):
            parts.append(NETWORK)
        else:
            known = world.read(operand)
            parts.append(known[0] if known else UNKNOWN + world.origin(operand))
    return "".join(parts)


def rev(_world: World, arguments: tuple[str, ...], stdin: str) -> str | None:
    return None if arguments else "".join(line.rstrip("\n")[::-1] + "\n" for line in stdin.splitlines(keepends=True))


def tac(_world: World, arguments: tuple[str, ...], stdin: str) -> str | None:
    return None if arguments else "".join(line + "\n" for line in reversed(stdin.splitlines()))


_CLASSES = {"upper": "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "lower": "abcdefghijklmnopqrstuvwxyz", "digit": "0123456789", "space": " \t\n\r\v\f",
            "alpha": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"}  # fmt: skip
_CLASSES["alnum"] = _CLASSES["digit"] + _CLASSES["alpha"]


def _tr_set(text: str) -> str:
    text = re.sub(r"\[:(\w+):\]", lambda match: _CLASSES.get(match.group(1), ""), decode_format(text))
    return re.sub(
        r"(.)-(.)",
        lambda match: "".join(map(chr, range(ord(match.group(1)), ord(match.group(2)) + 1)))[:1024],
        text,
        flags=re.DOTALL,
    )


def tr(_world: World, arguments: tuple[str, ...], stdin: str) -> str | None:
    options = read_options(arguments)
    if not options.operands or not is_plain("".join(options.operands)) or options.has("-c", "-C", "--complement"):
        return None
    first = _tr_set(options.operands[0])
    if options.has("-d", "--delete"):
        return "".join(character for character in stdin if character not in first)
    if len(options.operands) < 2:
        squeezed = f"([{re.escape(first)}])\\1+" if first else "$^"
        return re.sub(squeezed, r"\1", stdin) if options.has("-s") else None
    second = _tr_set(options.operands[1])
    second = second + second[-1:] * (len(first) - len(second))
    return stdin.translate(dict(zip(map(ord, first), second, strict=False)))


_SUBSTITUTE = re.compile(r"s(.)((?:[^\\]|\\.)*?)\1((?:[^\\]|\\.)*?)\1([gI0-9p]*)", re.DOTALL)
_TRANSLITERATE = re.compile(r"y(.)(.*)\1(.*)\1", re.DOTALL)


def _replacement(text: str, found: re.Match[str]) -> str:
    return text.replace("&", found.group(0))


def _commands(script: str) -> list[str]:
    """The commands of a sed script; a `;` inside one parts nothing."""
    whole = script.strip()
    if _SUBSTITUTE.fullmatch(whole) or _TRANSLITERATE.fullmatch(whole):
        return [whole]
    return [part.strip() for part in script.split(";")]


def sed(_world: World, arguments: tuple[str, ...], stdin: str) -> str | None:
    """`s/a/b/` and `y/abc/xyz/` with plain text; anything else is not followed."""
    options = read_options(arguments, ("-e", "--expression"))
    scripts = options.all_values("-e", "--expression") or options.operands[:1]
    if len(options.operands) > (0 if options.values else 1) or not scripts:
        return None
    for script in (part for text in scripts for part in _commands(text)):
        if (match := _SUBSTITUTE.fullmatch(script)) and not re.search(r"[*+{(|?]|\\[(|{?+<>bwsWS]", match.group(2)):
            pattern, replacement = match.group(2), re.sub(r"\\(.)", r"\1", match.group(3))
            try:
                compiled = re.compile(pattern, re.IGNORECASE if "I" in match.group(4) else 0)
            except re.error:
                return None
            lines = stdin.splitlines(keepends=True)
            count = 0 if "g" in match.group(4) else 1
            substitute = partial(_replacement, replacement)
            stdin = "".join(compiled.sub(substitute, line, count=count) for line in lines)
        elif match := _TRANSLITERATE.fullmatch(script):
            stdin = stdin.translate(dict(zip(map(ord, match.group(2)), match.group(3), strict=False)))
        else:
            return None
    return stdin


def cut(_world: World, arguments: tuple[str, ...], stdin: str) -> str | None:
    options = read_options(arguments, ("-d", "-f", "-c", "-b", "--delimiter", "--fields", "--characters"))
    span = options.value("-c", "-b", "--characters") or options.value("-f", "--fields") or ""
    match = re.fullmatch(r"(\d*)(-?)(\d*)", span)
    if not span or match is None or not is_known(stdin):
        return None
    first = int(match.group(1) or 1) - 1
    last = None if match.group(2) and not match.group(3) else int(match.group(3) or match.group(1) or 1)
    delimiter = (options.value("-d", "--delimiter") or "\t")[:1]
    by_character = options.value("-c", "-b", "--characters") is not None
    lines = (
        line[first:last] if by_character else delimiter.join(line.split(delimiter)[first:last])
        for line in stdin.splitlines()
    )
    return "".join(line + "\n" for line in lines)


def head(_world: World, arguments: tuple[str, ...], stdin: str) -> str | None:
    options = read_options(arguments, ("-n", "-c", "--lines", "--bytes"))
    count = options.value("-n", "--lines") or next(
        (flag[1:] for flag in arguments if re.fullmatch(r"-\d+", flag)), None
    )
    if count is None or not count.isdigit() or not is_known(stdin) or has_pattern(stdin) or options.value("-c"):
        return None
    return "".join(stdin.splitlines(keepends=True)[: int(count)])


def grep(_world: World, arguments: tuple[str, ...], stdin: str) -> str | None:
    """Keeps what is left of a listing; a search for Lyma's processes finds Lyma."""
    if any("lyma" in word for word in arguments) and "-v" not in arguments and stdin:
        return OURSELVES
    return stdin if "-v" in arguments and (has_pattern(stdin) or SOMETHING in stdin) else None


_PRINTS = re.compile(r"\s*BEGIN\s*\{\s*(printf?)\s*\(?\s*\"((?:[^\"\\%]|\\.)*)\"\s*\)?\s*;?\s*\}\s*")


def awk(_world: World, arguments: tuple[str, ...], stdin: str) -> str | None:
    """`{print $n}` of known text."""
    match = re.fullmatch(r"\s*\{\s*print\s+\$(\d+);?\s*\}\s*", arguments[-1]) if len(arguments) == 1 else None
    printed = _PRINTS.fullmatch(arguments[-1]) if len(arguments) == 1 else None
    if printed:
        return decode_format(printed.group(2)) + ("\n" if printed.group(1) == "print" else "")
    if has_pattern(stdin):
        return stdin
    if match is None or not is_known(stdin):
        return None
    number = int(match.group(1))
    rows = [(line.split() if number else [line]) for line in stdin.splitlines()]
    return "".join((row[max(number - 1, 0)] if number <= len(row) else "") + "\n" for row in rows)
