"""Who may be asked: pins of folders and of asks, preferences, models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lyma_server.config.model import FolderSettings, ProviderSettings
from lyma_server.errors import UsageError
from lyma_server.router.plan import plan
from lyma_server.router.providers.base import Provider
from tests.routing import make_request

if TYPE_CHECKING:
    from pathlib import Path

SIZES = ProviderSettings(fast="a-fast", strong="a-strong")
A, B, C = (
    Provider("a", "openai", "http://a.invalid", "a-model", settings=SIZES),
    Provider("b", "openai", "http://b.invalid", "b-model"),
    Provider("c", "anthropic", "http://c.invalid", "c-model"),
)


def planned(folders: tuple[FolderSettings, ...] = (), **request: Any) -> list[tuple[str, str]]:
    return [(provider.name, model) for provider, model in plan((A, B, C), folders, make_request(**request))]


def names(folders: tuple[FolderSettings, ...] = (), **request: Any) -> list[str]:
    return [name for name, _ in planned(folders, **request)]


def test_all_in_order() -> None:
    assert names() == ["a", "b", "c"]


def test_a_preference_only_goes_first_and_an_unknown_one_changes_nothing() -> None:
    assert names(prefer="b") == ["b", "a", "c"]
    assert names(prefer="nobody") == ["a", "b", "c"]


def test_only_those_among_whom_to_ask_are_asked() -> None:
    assert names(among=("c", "a", "nobody")) == ["a", "c"]
    assert planned(among=("b",), model="fast") == [("b", "b-model")]
    assert names(among=()) == []


def test_a_pin_is_the_only_one() -> None:
    assert names(provider="c") == ["c"]


def test_a_pinned_folder_sends_to_its_providers_alone(tmp_path: Path) -> None:
    folders = (
        FolderSettings(path=str(tmp_path), order=("c", "a")),
        FolderSettings(path=str(tmp_path / "inner"), order=("b",)),
    )
    (tmp_path / "inner").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "inner")
    assert names(folders, folder=str(tmp_path)) == ["c", "a"]
    assert names(folders, folder=str(tmp_path / "below")) == ["c", "a"]
    assert names(folders, folder=str(tmp_path / "inner" / "deep")) == ["b"]
    assert names(folders, folder=str(tmp_path / "link")) == ["b"]
    assert names(folders, folder=f"{tmp_path}-beside") == ["a", "b", "c"]
    assert names(folders, folder=str(tmp_path), prefer="b") == ["c", "a"]


def test_a_home_folder_may_be_named_with_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert names((FolderSettings(path="~/work", order=("b",)),), folder=str(tmp_path / "work" / "x")) == ["b"]


def test_what_a_folder_forbids_no_pin_allows(tmp_path: Path) -> None:
    folders = (FolderSettings(path=str(tmp_path), order=("c",)),)
    with pytest.raises(UsageError, match="pinned to c, so nothing from it is sent to a"):
        names(folders, folder=str(tmp_path), provider="a")
    nowhere = (FolderSettings(path=str(tmp_path), order=("gone",)),)
    with pytest.raises(UsageError, match="pinned to gone, which is not configured"):
        names(nowhere, folder=str(tmp_path))


def test_a_name_is_asked_where_it_is_known_and_else_at_the_first() -> None:
    assert planned(model="b-model") == [("b", "b-model"), ("a", "a-model"), ("c", "c-model")]
    assert planned(model="new") == [("a", "new"), ("b", "b-model"), ("c", "c-model")]
    assert planned(model="new", prefer="c") == [("c", "new"), ("a", "a-model"), ("b", "b-model")]


def test_a_size_is_each_providers_own() -> None:
    assert planned(model="strong") == [("a", "a-strong"), ("b", "b-model"), ("c", "c-model")]
    assert planned(model="balanced", provider="a") == [("a", "a-model")]
