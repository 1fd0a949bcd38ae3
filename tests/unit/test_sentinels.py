"""What the proof of the mask lays out is gone again, also where its process was killed."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from lyma_server.isolation.canary import STALE_S, remove_stale, sentinel

if TYPE_CHECKING:
    from pathlib import Path

OURS = "canary-0123456789abcdef"


def age(path: Path, seconds: float) -> None:
    moment = time.time() - seconds
    os.utime(path, (moment, moment))


def test_a_sentinel_is_there_for_as_long_as_its_block(tmp_path: Path) -> None:
    with sentinel(tmp_path, 0o600) as file:
        assert file.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == []


def test_the_next_one_removes_what_a_killed_process_left(tmp_path: Path) -> None:
    (tmp_path / OURS).touch()
    age(tmp_path / OURS, STALE_S + 1)
    with sentinel(tmp_path, 0o600) as file:
        assert list(tmp_path.iterdir()) == [file]


def test_what_may_be_in_use_or_another_s_stays(tmp_path: Path) -> None:
    kept = {OURS: b"", "canary-0123456789abcdee": b"words", "canary-notes": b"", "other": b""}
    for name, content in kept.items():
        (tmp_path / name).write_bytes(content)
        age(tmp_path / name, 0 if name == OURS else STALE_S + 1)
    remove_stale(tmp_path, time.time())
    assert {path.name for path in tmp_path.iterdir()} == set(kept)
