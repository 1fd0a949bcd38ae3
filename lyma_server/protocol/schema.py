"""The messages as one JSON Schema (draft 2020-12), for tools and for clients in other languages."""

from __future__ import annotations

from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin

import attrs

from lyma_server.protocol.base import PROTOCOL_VERSION
from lyma_server.protocol.events import Event
from lyma_server.protocol.registry import METHODS
from lyma_server.protocol.shape import all_types, is_message, name_of, shape_of
from lyma_server.protocol.tables import error_rows

if TYPE_CHECKING:
    from lyma_server.protocol.base import Json

DIALECT = "https://json-schema.org/draft/2020-12/schema"
PRIMITIVES: dict[Any, Json] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    type(None): {"type": "null"},
    Any: {},
}


def render_schema() -> dict[str, Json]:
    """Definitions of all messages, and beside them the methods and the errors. Unknown fields are allowed everywhere."""
    return {
        "$schema": DIALECT,
        "title": f"Lyma's editor protocol, version {PROTOCOL_VERSION}",
        "protocolVersion": PROTOCOL_VERSION,
        "methods": {method.name: _method(method) for method in METHODS},
        "errors": [attrs.asdict(row) for row in error_rows()],
        "$defs": {name_of(cls) or "": _definition(cls) for cls in all_types()},
    }


def _method(method: Any) -> Json:
    result = {"result": _reference(method.result.__name__)} if method.result else {}
    head = {"sender": method.sender, "kind": method.kind, "description": method.doc}
    return {**head, "params": _reference(method.params.__name__), **result}


def _reference(name: str) -> Json:
    return {"$ref": f"#/$defs/{name}"}


def _definition(cls: Any) -> Json:
    if not is_message(cls):
        return _type(cls, expand=True)
    shape = shape_of(cls)
    definition: Json = {
        "type": "object",
        "properties": {field.name: _property(field.type, tag=field.tag) for field in shape.fields},
        "required": [field.name for field in shape.fields if not field.optional],
    }
    if shape.doc:
        definition["description"] = shape.doc
    if cls is Event:
        definition["allOf"] = [_reference("EventBody")]
    return definition


def _property(annotation: Any, *, tag: bool) -> Json:
    return {"const": get_args(annotation)[0]} if tag else _type(annotation)


def _type(annotation: Any, *, expand: bool = False) -> Json:
    name = name_of(annotation)
    if name and not expand:
        return _reference(name)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return {"anyOf": [_type(member) for member in arguments]}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is tuple:
        return {"type": "array", "items": _type(arguments[0])}
    if origin is dict:
        return {"type": "object"}
    return dict(PRIMITIVES[annotation])
