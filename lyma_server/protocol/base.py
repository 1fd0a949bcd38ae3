"""What every wire type shares."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import attrs

if TYPE_CHECKING:
    from typing import dataclass_transform

    @dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(attrs.field,))
    def message(cls: type) -> type: ...

else:
    message = partial(attrs.frozen, kw_only=True, repr=False)

Json: TypeAlias = Any
"""A JSON value: None, bool, int, float, str, a list of them, or a dict from str to them."""

PROTOCOL_VERSION = 1

Message = TypeVar("Message")


def evolve(value: Message, **changes: object) -> Message:
    """A copy of a message with some fields changed."""
    return attrs.evolve(value, **changes)  # type: ignore[misc]  # a checker sees a dataclass


def wire_name(name: str) -> str:
    """The name of a field on the wire: `max_steps` is `maxSteps`, `class_` is `class`."""
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(word.capitalize() for word in rest)
