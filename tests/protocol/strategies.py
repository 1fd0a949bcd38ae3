"""Hypothesis makes messages from their types."""

from __future__ import annotations

from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import attrs
from hypothesis import strategies as st

from lyma_server.protocol.hooks import LARGEST_INTEGER
from lyma_server.protocol.shape import all_types, is_message

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
PRIMITIVES: dict[Any, st.SearchStrategy[Any]] = {
    bool: st.booleans(),
    int: st.integers(-LARGEST_INTEGER, LARGEST_INTEGER),
    float: st.floats(allow_nan=False, allow_infinity=False),
    str: TEXT,
    type(None): st.none(),
    Any: JSON,
}
MESSAGES = [cls for cls in all_types() if is_message(cls)]


def of_type(annotation: Any) -> st.SearchStrategy[Any]:
    """Values of an annotation, any message class included."""
    if is_message(annotation):
        attrs.resolve_types(annotation)
        return st.builds(annotation, **{field.name: of_type(field.type) for field in attrs.fields(annotation)})
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return st.one_of(*map(of_type, arguments))
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is tuple:
        return st.lists(of_type(arguments[0]), max_size=3).map(tuple)
    if origin is dict:
        return st.dictionaries(TEXT, JSON, max_size=3)
    return PRIMITIVES[annotation]
