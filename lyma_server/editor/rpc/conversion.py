"""LSP params, structured strictly: `"false"` is no boolean and a list is no string."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Optional, Union, cast, get_args, get_origin

from cattrs.cols import list_structure_factory
from cattrs.errors import AttributeValidationNote, IterableValidationNote
from lsprotocol import types
from lsprotocol.converters import get_converter

from lyma_server.protocol.base import wire_name

if TYPE_CHECKING:
    from cattrs import Converter

    from lyma_server.protocol.base import Json


class InvalidParams(Exception):
    """Params that do not fit; the message names the path."""


def strict_converter() -> Converter:
    """The converter of lsprotocol, without its readiness to make one type of another."""
    converter = get_converter()
    for kind in (str, bool, int):
        converter.register_structure_hook(kind, _take_exactly)
    converter.register_structure_hook(float, _take_number)
    for union in (int | str, int | str | None, Union[int, str], Optional[Union[int, str]]):  # noqa: UP007, UP045 - two forms of the same to a converter
        converter.register_structure_hook(union, _take_token)
    converter.register_structure_hook_factory(_is_sequence, _sequence_hook)
    return converter


def is_lsp_request(method: str) -> bool | None:
    """Whether LSP defines `method` as a request; null where LSP does not define it."""
    found = types.METHOD_TO_TYPES.get(method)
    return None if found is None else found[1] is not None


def structure_lsp(converter: Converter, method: str, params: Json) -> Any:
    """Params of an LSP method as its lsprotocol class, null where it takes none. Raises InvalidParams."""
    expected: Any = types.METHOD_TO_TYPES[method][2]
    if expected is None:
        return None
    if not isinstance(params, dict):
        raise InvalidParams("params: an object is expected")
    try:
        return converter.structure(params, expected)
    except Exception as problem:
        raise InvalidParams(describe(problem)) from problem


def describe(problem: BaseException) -> str:
    """Where the first mistake is and what it is: `params.textDocument.uri: a string is expected`."""
    path, parent = "params", "params"
    while isinstance(problem, BaseExceptionGroup):
        parent = path
        problem = problem.exceptions[0]
        for note in getattr(problem, "__notes__", ()):
            if isinstance(note, IterableValidationNote):
                path += f"[{note.index}]"
            elif isinstance(note, AttributeValidationNote):
                path += f".{wire_name(note.name)}"
    if isinstance(problem, KeyError) and problem.args:
        return f"{parent}.{problem.args[0]}: it is missing"
    if isinstance(problem, TypeError | ValueError) and str(problem).endswith("is expected"):
        return f"{path}: {problem}"
    return f"{path}: the value does not fit"


_NAMES = {str: "a string", bool: "a boolean", int: "an integer"}


def _take_exactly(value: Json, kind: type) -> Any:
    """A value of just this type. A member of an enumeration is written as its value; the hook of its base is asked."""
    if issubclass(kind, Enum):
        base = int if issubclass(kind, int) else str
        return kind(_take_exactly(value, base))
    if type(value) is not kind:
        raise TypeError(f"{_NAMES[kind]} is expected")
    return value


def _take_token(value: Json, kind: Any) -> int | str | None:
    """An id or a progress token."""
    if type(value) in (int, str) or (value is None and type(None) in get_args(kind)):
        return cast("int | str | None", value)
    raise TypeError("a string or an integer is expected")


def _take_number(value: Json, _kind: type) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("a number is expected")
    return value


def _is_sequence(kind: Any) -> bool:
    return get_origin(kind) in (Sequence, list)


def _sequence_hook(kind: Any, converter: Converter) -> Any:
    usual = list_structure_factory(kind, converter)

    def take_list(value: Json, kind: Any) -> Any:
        if not isinstance(value, list):
            raise TypeError("a list is expected")
        return usual(value, kind)

    return take_list
