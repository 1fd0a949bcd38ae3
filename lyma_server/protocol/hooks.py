"""How cattrs is taught to be exact. Imported when the first message is converted."""

from __future__ import annotations

import math
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin

import attrs
from cattrs import Converter
from cattrs.cols import homogenous_tuple_structure_factory
from cattrs.errors import ForbiddenExtraKeysError
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from lyma_server.protocol.base import wire_name
from lyma_server.protocol.events import Event

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lyma_server.protocol.base import Json

    Hook = Callable[[Any, Any], Any]

LARGEST_INTEGER = 2**53 - 1
"""Beyond it, a JavaScript client would not read back what it sent."""

NAMES: Mapping[type, str] = {
    type(None): "null",
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
}


class WrongValue(ValueError):
    """A value does not fit; the message ends the sentence that begins with its field."""


class WrongTag(WrongValue):
    """The tag of an object in a union is missing or unknown."""

    def __init__(self, tag: str, message: str) -> None:
        super().__init__(message)
        self.tag = tag


def complaint(error: BaseException) -> str:
    """Say what is wrong, so that the sentence can begin with the field."""
    if isinstance(error, KeyError):
        return "is missing"
    if isinstance(error, ForbiddenExtraKeysError):
        return f"has unknown fields: {', '.join(sorted(map(str, error.extra_fields)))}"
    if isinstance(error, WrongValue):
        return str(error)
    return f"is not valid ({type(error).__name__})"


def make_converter(*, closed: bool) -> Converter:
    """Make the converter; one that is `closed` refuses unknown fields."""
    converter = Converter(forbid_extra_keys=closed, unstruct_collection_overrides={tuple: list})
    for kind, check in CHECKS.items():
        converter.register_structure_hook(kind, _checked(check))
    converter.register_structure_hook_factory(attrs.has, lambda cls: _structure_object(cls, converter))
    converter.register_unstructure_hook_factory(attrs.has, lambda cls: _unstructure_object(cls, converter))
    converter.register_structure_hook_factory(_is_list, lambda cls: _structure_list(cls, converter))
    converter.register_structure_hook_factory(_is_literal, _structure_literal)
    converter.register_structure_hook_factory(_is_json_object, lambda _cls: _checked(_object))
    converter.register_unstructure_hook_func(_is_json, lambda value: value)
    converter.register_structure_hook_factory(_is_union, lambda cls: _structure_union(cls, converter))
    converter.register_structure_hook_factory(lambda cls: cls is Event, lambda _cls: _structure_event(converter))
    converter.register_unstructure_hook_factory(lambda cls: cls is Event, lambda _cls: _unstructure_event(converter))
    return converter


def _wrong_type(expected: str, value: Json) -> WrongValue:
    return WrongValue(f"must be {expected}, not {NAMES.get(type(value), 'something else')}")


def _boolean(value: Json) -> bool:
    if type(value) is not bool:
        raise _wrong_type("a boolean", value)
    return value


def _integer(value: Json) -> int:
    if type(value) is not int:
        raise _wrong_type("an integer", value)
    if abs(value) > LARGEST_INTEGER:
        raise WrongValue("is too large for an integer")
    return value


def _number(value: Json) -> float:
    """JSON has one kind of number: an integer is one too, as long as it loses nothing."""
    if type(value) is int:
        return float(_integer(value))
    if type(value) is not float:
        raise _wrong_type("a number", value)
    if not math.isfinite(value):
        raise WrongValue("must be a finite number")
    return value


def _string(value: Json) -> str:
    if type(value) is not str:
        raise _wrong_type("a string", value)
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise WrongValue("holds half of a surrogate pair, which no text can") from None
    return value


def _object(value: Json) -> dict[str, Json]:
    if type(value) is not dict:
        raise _wrong_type("an object", value)
    return value


def _list(value: Json) -> list[Json]:
    if type(value) is not list:
        raise _wrong_type("a list", value)
    return value


CHECKS: Mapping[type, Callable[[Json], object]] = {bool: _boolean, int: _integer, float: _number, str: _string}


def _checked(check: Callable[[Json], object]) -> Hook:
    return lambda value, _cls: check(value)


def _is_list(cls: Any) -> bool:
    return get_origin(cls) is tuple


def _is_literal(cls: Any) -> bool:
    return get_origin(cls) is Literal


def _is_union(cls: Any) -> bool:
    return get_origin(cls) in (Union, UnionType)


def _is_json_object(cls: Any) -> bool:
    return get_origin(cls) is dict


def _is_json(cls: Any) -> bool:
    return cls is Any or _is_json_object(cls)


def _structure_object(cls: type, converter: Converter) -> Hook:
    attrs.resolve_types(cls)
    renamed: dict[str, Any] = {field.name: override(rename=wire_name(field.name)) for field in attrs.fields(cls)}
    build: Hook = make_dict_structure_fn(
        cls, converter, _cattrs_forbid_extra_keys=converter.forbid_extra_keys, **renamed
    )
    return lambda value, _cls: build(_object(value), cls)


def _unstructure_object(cls: type, converter: Converter) -> Callable[[Any], Json]:
    attrs.resolve_types(cls)
    renamed: dict[str, Any] = {
        field.name: override(rename=wire_name(field.name), omit_if_default=field.default is None)
        for field in attrs.fields(cls)
    }
    return make_dict_unstructure_fn(cls, converter, **renamed)


def _structure_list(cls: Any, converter: Converter) -> Hook:
    """Homogeneous tuples are lists on the wire; there are no others."""
    build: Hook = homogenous_tuple_structure_factory(cls, converter)
    return lambda value, _cls: build(_list(value), cls)


def _structure_literal(cls: Any) -> Hook:
    allowed: tuple[str, ...] = get_args(cls)

    def hook(value: Json, _cls: Any) -> str:
        if type(value) is not str or value not in allowed:
            raise WrongValue(f"must be {' or '.join(map(repr, allowed))}".replace("'", '"'))
        return value

    return hook


def _structure_union(cls: Any, converter: Converter) -> Hook:
    """The JSON type of the value picks the member; among several objects, their tag does."""
    members = {_json_type(member): member for member in get_args(cls) if not attrs.has(member)}
    objects = [member for member in get_args(cls) if attrs.has(member)]
    if objects:
        members[dict] = objects[0] if len(objects) == 1 else None
    tagged = _structure_tagged(objects, converter) if len(objects) > 1 else None
    expected = " or ".join(NAMES[kind] for kind in members)

    def hook(value: Json, _cls: Any) -> object:
        if value is None and type(None) in members:
            return None
        if type(value) not in members:
            raise _wrong_type(expected, value)
        if tagged is not None and type(value) is dict:
            return tagged(value, cls)
        return converter.structure(value, members[type(value)])

    return hook


def _json_type(cls: Any) -> type:
    if _is_list(cls):
        return list
    if _is_literal(cls):
        return str
    kind: type = get_origin(cls) or cls
    return kind


def _structure_tagged(members: list[Any], converter: Converter) -> Hook:
    """`type` or `kind`, whichever all of them have with a default of its own, tells them apart."""
    tag = tag_of(members[0])
    by_value = {getattr(attrs.fields(member), tag).default: member for member in members}

    def hook(value: Json, _cls: Any) -> object:
        name = value.get(tag)
        member = by_value.get(name) if type(name) is str else None
        if member is None:
            raise WrongTag(tag, "is missing" if tag not in value else f"must be one of {', '.join(by_value)}")
        return converter.structure(value, member)

    return hook


def tag_of(cls: Any) -> str:
    """The field that tells a member of a union from the others."""
    names = {field.name for field in attrs.fields(cls)}
    return "type" if "type" in names else "kind"


def _structure_event(converter: Converter) -> Hook:
    build = _structure_object(Event, converter)
    return lambda value, cls: build({**_object(value), "body": value}, cls)


def _unstructure_event(converter: Converter) -> Callable[[Any], Json]:
    def hook(event: Event) -> Json:
        head = {"session": event.session, "turn": event.turn, "seq": event.seq}
        tail = {"replay": True} if event.replay else {}
        return {**head, **converter.unstructure(event.body), **tail}

    return hook
