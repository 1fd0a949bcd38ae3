"""Files that are read only if they are files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from lyma_server.isolation.regular import read_regular

if TYPE_CHECKING:
    from pathlib import Path


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    for name in ("pipe", "device", ".", "missing"):
        with pytest.raises(OSError, match=r"regular|directory"):
            read_regular(tmp_path / name, 10)


def test_no_more_is_read_than_wanted_and_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    (tmp_path / "link").symlink_to("file")
    assert [read_regular(tmp_path / "link", limit) for limit in (4, 100)] == [b"0123", b"0123456789"]
