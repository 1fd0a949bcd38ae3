"""config.toml, however damaged: settings, or one error that says where, and never a key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from lyma_server.config.load import Loaded, load_settings
from lyma_server.config.paths import Home
from lyma_server.errors import ConfigError
from tests.fuzz.mutations import corpus, damaged, effort

if TYPE_CHECKING:
    from pathlib import Path

KEY = "0123456789abcdefghij"
SEEDS = corpus("config")
TOKENS = (
    *(
        b"\n[providers.openai]\n",
        b"\n[[folders]]\n",
        b"\n[router]\n",
        b"\nkeys = [",
        b"order = ",
        b"''",
        b'"""',
        b"{}",
        b"[]",
    ),
    *(
        b"1e400",
        b"-1",
        b"9" * 30,
        b"nan",
        b"2020-01-01",
        b"\\ud800",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\0",
        b"a.b.c = 1\n",
        b"true",
    ),
)


def load(data: bytes, place: Path) -> Loaded | ConfigError:
    home = Home(place)
    home.config.touch(mode=0o600)
    home.config.write_bytes(data)
    try:
        return load_settings({}, home)
    except ConfigError as error:
        return error


def check(data: bytes, place: Path) -> None:
    found = load(data, place)
    if isinstance(found, Loaded):
        assert found.settings.order
        assert KEY not in repr(found)
        return
    assert KEY not in f"{found.message}{found.detail}{found.data}"
    assert found.message.endswith((".", "?"))
    assert found.data["file"] == str(place / "config.toml")
    assert 1 <= found.data.get("line", 1) <= data.count(b"\n") + 1


@pytest.mark.parametrize("data", SEEDS)
def test_the_corpus(data: bytes, tmp_path: Path) -> None:
    check(data, tmp_path)


@effort(120)
@given(data=damaged(SEEDS, TOKENS))
def test_it_is_read_or_refused(tmp_path: Path, data: bytes) -> None:
    check(data, tmp_path)
