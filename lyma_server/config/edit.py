"""Changes to config.toml that touch nothing else: its comments, its order and every other byte stay.

What would be written is parsed and compared first. A change that did more or less than it should is refused.
"""

from __future__ import annotations

import copy
import tomllib
from typing import TYPE_CHECKING, Any, TypeAlias

from attrs import frozen

from lyma_server.config import complete, environment, file, load, places, presets, shape, splice
from lyma_server.config.mistakes import Mistake, dotted, sentence
from lyma_server.config.store import locked, replace
from lyma_server.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from lyma_server.config.paths import Home
    from lyma_server.secret import Secret

Document: TypeAlias = dict[str, Any]


@frozen
class Change:
    """What the file should say, texts that may say it (best first), and whether comments may go with what is removed."""

    document: Document
    proposals: Iterable[str]
    may_lose_comments: bool = False


def set_value(home: Home, key: str, text: str, environ: Mapping[str, str] | None = None) -> None:
    """Set the setting with the dotted name `key` to what `text` means, written as in a variable.

    Raises UsageError for a setting or a value that does not exist, ConfigError where the file cannot be changed.
    """
    path = tuple(key.split("."))
    leaf = shape.find_leaf(path)
    if leaf is None:
        raise UsageError(sentence(environment.unknown_name(key)))
    if path[-1] == "keys":
        raise UsageError(f"Keys are no plain settings: use `lyma keys add {path[1]}` or `lyma keys remove {path[1]}`.")
    value = leaf.kind.parse(text)
    mistakes: list[Mistake] = []
    leaf.kind.read(value, path, mistakes)
    _refuse(mistakes)
    _edit(home, lambda document, old: _assignment(document, old, path, value), environ or {})


def add_key(
    home: Home, provider: str, key: Secret, account: str | None = None, environ: Mapping[str, str] | None = None
) -> None:
    """Add a key, or a reference to one, after those that the provider has in the file.

    Where it has none there, references to those in the vendor's own variable are written first: they count only as long
    as the file has none, and would be lost.
    """
    entry: Document = {"value": key.reveal()} | ({"account": account} if account else {})
    mistakes: list[Mistake] = []
    shape.key_kind().read(key.reveal(), (f"a key of {provider}",), mistakes)
    _refuse(mistakes)
    usual = presets.PRESETS[provider].key_variable if provider in presets.PRESETS else None
    first = [f"env:{name}" for name in complete.keys_in_environment(usual, environ or {})] if usual else []
    _edit(home, lambda document, old: _addition(document, old, (provider, first), entry), environ or {})


def remove_key(home: Home, provider: str, number: int, environ: Mapping[str, str] | None = None) -> None:
    """Remove the key with this number, counted from 1 in the order of the file."""
    _edit(home, lambda document, old: _removal(document, old, provider, number), environ or {})


def remove_last_key(home: Home, provider: str, environ: Mapping[str, str] | None = None) -> None:
    """Take back the key that was added last."""
    _edit(home, lambda document, old: _removal(document, old, provider, None), environ or {})


def _edit(home: Home, change_of: Callable[[Document, str], Change], environ: Mapping[str, str]) -> None:
    with locked(home):
        old_text = file.read_text(home.config) or ""
        old = file.parse(home.config, old_text)
        change = change_of(copy.deepcopy(old), old_text)
        new_text = next((text for text in change.proposals if _does(change, old_text, text)), None)
        if new_text is None:
            raise ConfigError(
                f"{home.config} is written in a way that this cannot be changed without touching more; edit it by hand.",
                file=str(home.config),
            )
        before = _mistakes_of(old, environ)
        _refuse([mistake for mistake in _mistakes_of(change.document, environ) if mistake not in before])
        replace(home.config, new_text)


def _does(change: Change, old: str, new: str) -> bool:
    """Whether `new` says what it should, and still has every comment."""
    try:
        right = _without_empty_tables(tomllib.loads(new)) == _without_empty_tables(change.document)
    except ValueError:
        return False
    return right and (change.may_lose_comments or places.comments_of(old) == places.comments_of(new))


def _assignment(document: Document, text: str, path: tuple[str, ...], value: Any) -> Change:
    table = document
    for step in path[:-1]:
        table = table.setdefault(step, {})
        if not isinstance(table, dict):
            return Change(document, ())
    table[path[-1]] = value
    return Change(document, splice.with_value(text, path, value))


def _addition(document: Document, text: str, whose: tuple[str, list[str]], entry: Document) -> Change:
    provider, first = whose
    table = _provider_table(document, provider)
    if any(_value_of(each) == entry["value"] for each in (*table.get("keys", ()), *table.get("key", ()))):
        raise UsageError(f"{provider} has this key already; nothing was changed.")
    short = entry if "account" in entry else entry["value"]
    path = ("providers", provider, "keys")
    if table.get("keys"):
        table["keys"].append(short)
        return Change(document, splice.with_element(text, path, short))
    if table.get("key"):
        table["key"].append(entry)
        return Change(document, splice.with_element(text, (*path[:-1], "key"), entry))
    return _assignment(document, text, path, [*(name for name in first if name != short), short])


def _removal(document: Document, text: str, provider: str, number: int | None) -> Change:
    table = _provider_table(document, provider)
    entries = [(name, position) for name in table if name in {"keys", "key"} for position in range(len(table[name]))]
    number = len(entries) if number is None else number
    if not 1 <= number <= len(entries):
        held = f"it has {len(entries)}" if entries else "it has none in the file"
        raise UsageError(f"{provider} has no key {number}; {held}. `lyma keys list` shows them.")
    name, position = entries[number - 1]
    del table[name][position]
    path = ("providers", provider, name)
    if not table[name] and not places.elements_of(text, path):
        del table[name]
    return Change(document, splice.without_element(text, path, position), may_lose_comments=True)


def _provider_table(document: Document, provider: str) -> Document:
    providers = document.setdefault("providers", {})
    table = providers.setdefault(provider, {}) if isinstance(providers, dict) else None
    lists = [table.get("keys", []), table.get("key", [])] if isinstance(table, dict) else [None]
    if not isinstance(table, dict) or not all(isinstance(each, list) for each in lists):
        raise ConfigError(f"The keys of {provider} are not written as they should be; `lyma config show` says how.")
    return table


def _without_empty_tables(value: Any) -> Any:
    """A table that is there and empty means the same as none."""
    if not isinstance(value, dict):
        return value
    pruned = {name: _without_empty_tables(each) for name, each in value.items()}
    return {name: each for name, each in pruned.items() if each != {}}


def _value_of(entry: Any) -> Any:
    return entry.get("value") if isinstance(entry, dict) else entry


def _mistakes_of(document: Document, environ: Mapping[str, str]) -> list[Mistake]:
    mistakes: list[Mistake] = []
    load.read_layers(document, "", mistakes, environ, {})
    return mistakes


def _refuse(mistakes: list[Mistake]) -> None:
    if mistakes:
        raise UsageError(f"Nothing was changed: {sentence(f'{dotted(mistakes[0].path)} {mistakes[0].problem}')}")
