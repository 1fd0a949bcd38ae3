"""What can be sent: JSON in UTF-8."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from lyma_server.protocol.base import Json

Value = TypeVar("Value", bound="Json")
HALF_CHARACTER = re.compile("[\ud800-\udfff]")


def encodable(value: Value) -> Value:
    """`value` with half surrogate pairs replaced. They stand for the bytes of a file name or an argument that is not in
    UTF-8; a request that holds one could not be sent at all, nor any later one of that session.
    """
    return cast("Value", _encodable(value))


def _encodable(value: Json) -> Json:
    if isinstance(value, str):
        return value if value.isascii() else HALF_CHARACTER.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_encodable(name): _encodable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(item) for item in value]
    return value
