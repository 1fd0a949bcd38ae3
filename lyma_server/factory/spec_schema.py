"""agent.toml as JSON Schema, for editors and other tools. Made from the classes of the specification."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from lyma_server.config import shape
from lyma_server.config.kinds import Choice, ListOf, Record, Whole
from lyma_server.config.model import CeilingSettings
from lyma_server.factory.spec import Spec
from lyma_server.factory.spec_kinds import Constant, Glob, Matching, Prose, Several
from lyma_server.factory.spec_text import limits
from lyma_server.factory.versions import SPEC_FORMAT

if TYPE_CHECKING:
    from lyma_server.config.kinds import Kind
    from lyma_server.protocol.base import Json

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def render_schema(ceiling: CeilingSettings | None = None) -> dict[str, Json]:
    """The schema; limits end at the ceiling. The compiler refuses more than a schema can say."""
    most = {path: getattr(ceiling or CeilingSettings(), name) for path, name, _ in limits()}
    return {"$schema": DIALECT, "title": f"agent.toml, version {SPEC_FORMAT}", **_table(Spec, (), most)}


def _table(cls: type, path: tuple[str, ...], most: dict[tuple[str, str], int]) -> dict[str, Json]:
    parts = shape.parts(cls, path)
    properties = {name: _part(part, most) for name, part in parts.items()}
    needed = [name for name, part in parts.items() if is_needed(part)]
    return {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}


def is_needed(part: shape.Part) -> bool:
    """Whether it must be there: it has no default, or holds something that has none."""
    if isinstance(part, shape.Leaf):
        return part.default is attrs.NOTHING
    return any(is_needed(inner) for inner in shape.parts(part.cls, part.path).values())


def _part(part: shape.Part, most: dict[tuple[str, str], int]) -> dict[str, Json]:
    if isinstance(part, shape.Section):
        return {"description": part.doc, **_table(part.cls, part.path, most)}
    schema = {"description": part.doc, **of_kind(part.kind)}
    if part.path in most:
        schema["maximum"] = most[part.path[0], part.path[1]]
    if part.default is not attrs.NOTHING:
        schema["default"] = list(part.default) if isinstance(part.default, tuple) else part.default
    return schema


def of_kind(kind: Kind | Any) -> dict[str, Json]:
    """What a kind accepts, as far as a schema can say it."""
    if isinstance(kind, (Constant, Prose, Matching, Glob)):
        return dict(kind.schema)
    if isinstance(kind, Whole):
        return {"type": "integer", "minimum": kind.least}
    if isinstance(kind, Choice):
        return {"type": "string", "enum": list(kind.options)}
    if isinstance(kind, Several):
        return {"type": "array", "items": of_kind(kind.item), "maxItems": kind.most}
    if isinstance(kind, ListOf):
        return {"type": "array", "items": of_kind(kind.item)}
    if isinstance(kind, Record):
        properties = {name: of_kind(inner) for name, inner in kind.kinds.items()}
        return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    raise TypeError(f"{type(kind).__name__} has no schema")
