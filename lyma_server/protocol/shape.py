"""The messages as data: names, fields and types, in the order in which a reader meets them. Renderers need no more."""

from __future__ import annotations

import inspect
import re
from functools import cache, reduce
from operator import or_
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, Protocol, Union, get_args, get_origin

import attrs

from lyma_server.protocol.agents import RunStatus, Standing
from lyma_server.protocol.base import wire_name
from lyma_server.protocol.events import Event, EventBody, RouteNext, StopReason
from lyma_server.protocol.items import Item
from lyma_server.protocol.messages import Block, LymaCapabilities
from lyma_server.protocol.registry import METHODS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ALIASES: Mapping[Any, str] = {
    Block: "Block",
    Item: "Item",
    EventBody: "EventBody",
    StopReason: "StopReason",
    RouteNext: "RouteNext",
    Standing: "Standing",
    RunStatus: "RunStatus",
}
"""Unions and literals that have a name on the wire's side too."""


@attrs.frozen
class Field:
    """A field of a message. `optional`: it may be absent on the wire. `type` is a Python annotation, resolved."""

    name: str
    type: Any
    optional: bool
    tag: bool


@attrs.frozen
class Shape:
    """A message: its name, its meaning and its fields."""

    name: str
    doc: str
    fields: tuple[Field, ...]


class Notation(Protocol):
    """How a language writes types."""

    def primitive(self, kind: type) -> str:
        """Write bool, int, float, str, None or Any."""

    def choice(self, values: Sequence[str]) -> str:
        """Write a closed set of strings."""

    def listing(self, element: str) -> str:
        """Write a list."""

    def mapping(self) -> str:
        """Write a JSON object of unknown fields."""

    def name(self, name: str) -> str:
        """Write the name of a message or an alias."""

    def union(self, members: Sequence[str]) -> str:
        """Write alternatives."""


def is_message(annotation: Any) -> bool:
    """Whether it is a class of messages, not an alias or a plain type."""
    return bool(attrs.has(annotation))


def name_of(annotation: Any) -> str | None:
    """The name of a message or an alias; None for a plain type."""
    return ALIASES.get(annotation) or (annotation.__name__ if is_message(annotation) else None)


def write_type(annotation: Any, notation: Notation, *, expand: bool = False) -> str:
    """Write a type; what has a name by its name, but an alias by what it stands for where `expand`."""
    name = name_of(annotation)
    if name and not expand:
        return notation.name(name)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return notation.union([write_type(member, notation) for member in arguments])
    if origin is Literal:
        return notation.choice(arguments)
    if origin is tuple:
        return notation.listing(write_type(arguments[0], notation))
    if origin is dict:
        return notation.mapping()
    return notation.primitive(annotation)


@cache
def sent_classes() -> frozenset[type]:
    """The classes that clients send: what has a default may be absent in these."""
    found: dict[Any, None] = {}
    for method in METHODS:
        if method.sender == "client":
            _collect(method.params, found)
    _collect(LymaCapabilities, found)
    return frozenset(cls for cls in found if is_message(cls))


@cache
def all_types() -> tuple[Any, ...]:
    """Every message class and alias, each after what mentions it first."""
    found: dict[Any, None] = {}
    for method in METHODS:
        _collect(method.params, found)
        if method.result is not None:
            _collect(method.result, found)
    _collect(LymaCapabilities, found)
    return tuple(found)


def shape_of(cls: Any) -> Shape:
    """Describe a message class."""
    return Shape(cls.__name__, doc_of(cls), tuple(_fields(cls)))


def doc_of(cls: Any) -> str:
    """The class's docstring on one line, with its fields named as on the wire."""
    names = {field.name for field in attrs.fields(cls)}
    text = " ".join(inspect.cleandoc(cls.__doc__ or "").split())
    return re.sub(r"`(\w+)`", lambda match: f"`{wire_name(match[1])}`" if match[1] in names else match[0], text)


def members_of(union: Any) -> tuple[Any, ...]:
    """The classes of a union."""
    return get_args(union)


def tag_value(cls: Any) -> str:
    """What `type` or `kind` holds in a member of a union."""
    return next(str(field.default) for field in attrs.fields(cls) if _is_tag(field))


def _fields(cls: Any) -> Iterator[Field]:
    attrs.resolve_types(cls)
    sent = cls in sent_classes()
    for field in attrs.fields(cls):
        if field.type is EventBody:
            continue
        tag = _is_tag(field)
        has_default = field.default is not attrs.NOTHING
        omitted = field.default is None or (cls is Event and has_default)
        kind = field.type
        if omitted and not sent:
            kind = _without_none(kind)
        yield Field(wire_name(field.name), kind, not tag and has_default and (sent or omitted), tag)


def _is_tag(field: attrs.Attribute[Any]) -> bool:
    return field.name in ("type", "kind") and isinstance(field.default, str)


def _without_none(annotation: Any) -> Any:
    if get_origin(annotation) not in (Union, UnionType):
        return annotation
    return reduce(or_, [member for member in get_args(annotation) if member is not type(None)])


def _collect(annotation: Any, found: dict[Any, None]) -> None:
    if annotation in found:
        return
    if is_message(annotation):
        found[annotation] = None
        attrs.resolve_types(annotation)
        for field in attrs.fields(annotation):
            _collect(field.type, found)
        return
    if annotation in ALIASES:
        found[annotation] = None
    for member in get_args(annotation):
        if not isinstance(member, str):
            _collect(member, found)
