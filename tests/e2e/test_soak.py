"""Endurance: a minute always, half an hour where everything is tested; SOAK_SECONDS sets another length, SOAK_SEED the seed."""

from __future__ import annotations

import os
import random
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.security.world import BWRAPS, LINUX
from tests.soak.soak import Soak

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = float(os.environ.get("SOAK_SECONDS") or (1800 if os.environ.get("TEST_ALL") == "1" else 60))
SEED = int(os.environ.get("SOAK_SEED") or random.SystemRandom().randrange(1 << 32))

pytestmark = [LINUX, pytest.mark.skipif(not BWRAPS, reason="this kernel or container lets bubblewrap do nothing")]


def test_it_endures(tmp_path: Path) -> None:
    print(f"SOAK_SEED={SEED} SOAK_SECONDS={SECONDS:g}")
    soak = Soak.lay_out(tmp_path, SEED)
    with ExitStack() as stack:
        for stub in soak.stubs:
            stack.enter_context(stub)
        soak.run(SECONDS)
    print(
        f"{len(soak.houses)} servers, {soak.befallen} calamities, {soak.plans.faults} faults, {dict(soak.outcomes)}; {'; '.join(soak.told)}"
    )
    notices = sum((house.inbox.notices for house in soak.houses), Counter())
    print(dict(notices))
    assert soak.plans.faults > 0
    assert sum(house.checked for house in soak.houses) > 20
    assert [text for text in notices if text.startswith("This session is not being saved")], "the disk was never full"
