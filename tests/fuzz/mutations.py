"""Well-formed bytes, damaged: what every fuzz test is fed with, and for how long.

The examples are the same in every run, unless everything is tested (`TEST_ALL=1`): then there are many more, and others each
time. What was ever found stands in `corpus/`, a folder for each target, and is tried first.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Sequence

CORPUS = Path(__file__).resolve().parent / "corpus"
LONG = os.environ.get("TEST_ALL") == "1"
LONGER = 25
MOST_DAMAGES = 4


def effort(examples: int) -> settings:
    """So many examples, or a multiple where there is time."""
    checks = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]
    most = examples * (LONGER if LONG else 1)
    return settings(max_examples=most, derandomize=not LONG, deadline=None, database=None, suppress_health_check=checks)


def corpus(target: str) -> tuple[bytes, ...]:
    """All that is kept for a target."""
    return tuple(path.read_bytes() for path in sorted((CORPUS / target).iterdir()))


@st.composite
def damaged(draw: st.DrawFn, seeds: Sequence[bytes], tokens: Sequence[bytes]) -> bytes:
    """A seed with a few places overwritten, removed, doubled, cut off, or with a token or a piece of another seed put in."""
    data = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(0, MOST_DAMAGES))):
        start = draw(st.integers(0, len(data)))
        stop = min(len(data), start + draw(st.integers(0, 24)))
        other = draw(st.sampled_from(seeds))
        piece = draw(
            st.one_of(
                st.sampled_from(tokens),
                st.binary(max_size=4),
                st.just(data[start:stop] * 2),
                st.just(b""),
                st.just(other[start:stop]),
            )
        )
        data = data[:start] + piece + data[stop:]
        if draw(st.integers(0, 9)) == 0:
            data = data[: draw(st.integers(0, len(data)))]
    return data
