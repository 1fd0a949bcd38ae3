"""The tables of protocol.md, made from the registry, the events and the error tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from lyma_server import errors
from lyma_server.protocol.events import EventBody
from lyma_server.protocol.registry import METHODS
from lyma_server.protocol.shape import doc_of, members_of, tag_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

STANDARD_ERRORS = (
    (-32700, "The message is not JSON."),
    (
        -32600,
        "The message is not a request, or its id belongs to one not yet answered, or the server is shutting down.",
    ),
    (-32601, "There is no such method."),
    (-32603, "Something went wrong inside Lyma; the message holds an incident number."),
    (-32002, "The first request must be `initialize`."),
    (-32800, "The request was cancelled before it had begun."),
)
NEVER_ON_THE_WIRE = (errors.LymaError, errors.ToolError)


@attrs.frozen
class ErrorRow:
    """An error of Lyma's own. Clients tell errors apart by `kind`."""

    code: int
    kind: str
    retryable: bool
    doc: str


def error_rows() -> tuple[ErrorRow, ...]:
    """Lyma's own errors by falling code; a class without a kind of its own adds nothing."""
    rows: dict[str, ErrorRow] = {}
    for cls in _subclasses(errors.LymaError):
        if cls not in NEVER_ON_THE_WIRE and "kind" in vars(cls):
            doc = " ".join((cls.__doc__ or "").split())
            rows[cls.kind] = ErrorRow(cls.code, cls.kind, cls.retryable, doc)
    return tuple(sorted(rows.values(), key=lambda row: -row.code))


def methods_table() -> str:
    """Every method with its sender, its parameters and its result."""
    rows = (
        (
            f"`{method.name}`",
            method.sender,
            method.kind,
            f"`{method.params.__name__}`",
            f"`{method.result.__name__}`" if method.result else "-",
            method.doc,
        )
        for method in METHODS
    )
    return _table(("method", "sent by", "kind", "params", "result", "meaning"), rows)


def events_table() -> str:
    """Every type of event."""
    rows = ((f"`{tag_value(cls)}`", f"`{cls.__name__}`", doc_of(cls)) for cls in members_of(EventBody))
    return _table(("type", "fields", "meaning"), rows)


def errors_table() -> str:
    """LSP's errors that Lyma uses, and Lyma's own."""
    standard = ((str(code), "-", "no", doc) for code, doc in STANDARD_ERRORS)
    own = ((str(row.code), f"`{row.kind}`", "yes" if row.retryable else "no", row.doc) for row in error_rows())
    return _table(("code", "kind", "retryable", "meaning"), (*standard, *own))


def _subclasses(cls: type[errors.LymaError]) -> Iterator[type[errors.LymaError]]:
    """Those of the table; what modules derive from them for themselves is told as what it derives from."""
    for child in cls.__subclasses__():
        if child.__module__ == errors.__name__:
            yield child
            yield from _subclasses(child)


def _table(head: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)
