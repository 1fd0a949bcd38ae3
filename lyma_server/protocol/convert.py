"""JSON to messages and back: camelCase, exact types, and errors that name the field.

Nothing is coerced: `"false"` is not a boolean, `true` is not a number, a list is not a string. The hooks of a class are
built when it is first met, since most processes meet few of them.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from lyma_server.errors import UsageError
from lyma_server.protocol.base import wire_name
from lyma_server.protocol.events import EventBody

if TYPE_CHECKING:
    from cattrs import Converter

    from lyma_server.errors import LymaError
    from lyma_server.protocol.base import Json

Message = TypeVar("Message")
LSP_TOKENS = {"workDoneToken", "partialResultToken"}


def structure(cls: type[Message], value: Json, *, closed: bool = False) -> Message:
    """Make a `cls` from a JSON value. Unknown fields are ignored, or refused where `closed`.

    Raises UsageError (-32602) that names the first field that is wrong; `data` holds its path as `field`.
    """
    if closed and type(value) is dict:
        value = _without_tokens(cls, value)
    try:
        return _converter(closed).structure(value, cls)
    except Exception as error:  # noqa: BLE001 - cattrs raises groups of whatever its hooks raise
        _refuse(error, cls)


def unstructure(value: object) -> Json:
    """Make the JSON value of a message. Fields that are None by default are omitted when None; events come out flat."""
    return _converter(False).unstructure(value)


def error_data(error: LymaError) -> dict[str, Json]:
    """The public part of an error, as it stands in `--json` output: kind, message, retryable and its data."""
    return {"kind": error.kind, "message": error.message, **wire_data(error)}


def wire_data(error: LymaError) -> dict[str, Json]:
    """The `data` of an error on the wire: `{kind, retryable, …}` in camelCase throughout."""
    own: dict[str, Json] = _in_camel_case(unstructure(error.data))
    return {**own, "kind": error.kind, "retryable": error.retryable}


def _without_tokens(cls: type, value: dict[str, Json]) -> dict[str, Json]:
    """LSP lets any request carry these; where a message has no use for them they are no mistake."""
    known = {wire_name(name) for name in cls.__annotations__}
    extra = LSP_TOKENS - known
    return {name: member for name, member in value.items() if name not in extra}


def _in_camel_case(value: Json) -> Json:
    if isinstance(value, dict):
        return {wire_name(str(name)): _in_camel_case(item) for name, item in value.items()}
    return [_in_camel_case(item) for item in value] if isinstance(value, list | tuple) else value


@cache
def _converter(closed: bool) -> Converter:
    from lyma_server.protocol.hooks import make_converter

    return make_converter(closed=closed)


def _refuse(error: BaseException, cls: type) -> NoReturn:
    """Turn what cattrs raised into one sentence about the first field that is wrong."""
    from lyma_server.protocol.hooks import complaint

    path: list[str] = []
    while isinstance(error, BaseExceptionGroup):
        step, error = _first(error)
        path += step
    path += [f".{tag}"] if (tag := getattr(error, "tag", "")) else []
    field = "".join(path).removeprefix(".")
    where = f"`{field}`" if field else f"The {cls.__name__}"
    raise UsageError(f"{where} {complaint(error)}.", field=field) from None


def _first(group: BaseExceptionGroup[Any]) -> tuple[list[str], BaseException]:
    """Unwrap one level: the step of the path that it stands for, and the first error in it."""
    from cattrs.errors import AttributeValidationNote, IterableValidationNote

    error = group.exceptions[0]
    for note in getattr(error, "__notes__", ()):
        if isinstance(note, IterableValidationNote):
            return [f"[{note.index}]"], error
        if isinstance(note, AttributeValidationNote):
            flat = note.type == EventBody  # its fields stand beside those of the event
            return ([] if flat else [f".{wire_name(note.name)}"]), error
    return [], error
