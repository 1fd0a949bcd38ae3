"""The settings as a tree of names, read off the classes in `model`: no setting is listed a second time.

Any other attrs class will do, too. A field may bring its own `kind` in its metadata.
"""

from __future__ import annotations

import types
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

import attrs

from lyma_server.config import kinds, model
from lyma_server.secret import Secret

if TYPE_CHECKING:
    from collections.abc import Iterator

ANY_NAME: Final = "*"
"""Stands in a path for the name that the user gave to a provider."""

LONG_FORMS: Final = {"key": "keys"}
"""`[[providers.openai.key]]` is the long form of an entry in `keys`."""


@attrs.frozen
class Leaf:
    """A setting with a value. `path` as in the file; `doc` in one sentence."""

    path: tuple[str, ...]
    kind: kinds.Kind
    default: Any
    doc: str


@attrs.frozen
class Section:
    """A table with the fields of a class; `named`: a table of such tables, by names that the user gives."""

    path: tuple[str, ...]
    cls: type
    doc: str
    named: bool = False


Part: TypeAlias = Leaf | Section

_PLAIN_KINDS: Final[dict[type, kinds.Kind]] = {str: kinds.Text(), Secret: kinds.KeyText()}


@cache
def parts(cls: type, path: tuple[str, ...] = ()) -> dict[str, Part]:
    """Return what may stand in the table of `cls`, by name; the field for `class` is `class_`."""
    hints = get_type_hints(cls)
    names = {field.name.rstrip("_"): field for field in attrs.fields(cls)}
    return {name: _part(hints[field.name], field, (*path, name)) for name, field in names.items()}


def leaves(cls: type = model.Settings, path: tuple[str, ...] = ()) -> Iterator[Leaf]:
    """Walk every setting there is, in order."""
    for part in parts(cls, path).values():
        if isinstance(part, Leaf):
            yield part
        else:
            yield from leaves(part.cls, inside(part))


def inside(section: Section, name: str = ANY_NAME) -> tuple[str, ...]:
    """Return the path of the fields in a section (in the one that the user called `name`)."""
    return (*section.path, name) if section.named else section.path


@cache
def leaves_by_path() -> dict[tuple[str, ...], Leaf]:
    """Every setting by its path."""
    return {leaf.path: leaf for leaf in leaves()}


def key_kind() -> kinds.Kind:
    """Return what an entry in a provider's `keys` accepts."""
    return _list_kind(model.KeySettings).item


def find_leaf(path: tuple[str, ...]) -> Leaf | None:
    """Return the setting at `path`, in which a provider has its own name."""
    if path[:1] == ("providers",) and len(path) > 1:
        path = (path[0], ANY_NAME, *path[2:])
    return leaves_by_path().get(path)


def _part(hint: Any, field: attrs.Attribute[Any], path: tuple[str, ...]) -> Part:
    doc = field.metadata["doc"]
    if "kind" in field.metadata:
        return Leaf(path, field.metadata["kind"], field.default, doc)
    if attrs.has(hint):
        return Section(path, hint, doc)
    if get_origin(hint) is dict:
        return Section(path, get_args(hint)[1], doc, named=True)
    return Leaf(path, _kind(hint, field), field.default, doc)


def _kind(hint: Any, field: attrs.Attribute[Any]) -> kinds.Kind:
    if get_origin(hint) in (Union, types.UnionType):
        hint = next(each for each in get_args(hint) if each is not type(None))
    if get_origin(hint) is Literal:
        return kinds.Choice(get_args(hint))
    if get_origin(hint) is tuple:
        return _list_kind(get_args(hint)[0])
    if hint is int:
        return kinds.Whole(field.metadata["least"])
    return _PLAIN_KINDS[hint]


def _list_kind(item: Any) -> kinds.ListOf:
    if item is str:
        return kinds.ListOf(kinds.Text(), "strings")
    hints = get_type_hints(item)
    record = {field.name: _kind(hints[field.name], field) for field in attrs.fields(item)}
    if item is model.KeySettings:
        expected = "a key, env:NAME, cmd:COMMAND or a table with value and account"
        return kinds.ListOf(kinds.Record(item, record, expected, short="value"), "keys")
    return kinds.ListOf(kinds.Record(item, record, f"a table with {' and '.join(record)}"), "tables")
