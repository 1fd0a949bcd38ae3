"""Every real payload is decided as the file says."""

import json
from pathlib import Path

import pytest

from lyma_server.router.policy import Failure, decide

ROWS = json.loads((Path(__file__).parent.parent / "data" / "error_payloads.json").read_text())
PHASES = {"body200": "body", "sse_first": "stream", "sse_mid": "stream", "sse_eof": "stream", "sse_stall": "stall"}


def failure_of(row: dict) -> Failure:
    return Failure(
        provider=row["provider"],
        phase=PHASES.get(row["phase"], row["phase"]),
        status=row["status"],
        headers=row["headers"],
        body=row["body"],
        transport=row["expected_class"] if row["phase"] == "transport" else "",
        committed=row["phase"] == "sse_mid",
    )


def test_the_file_has_all_its_rows():
    assert len(ROWS) >= 67
    assert len({row["id"] for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_payload_is_decided_as_the_file_says(row):
    decision = decide(failure_of(row), now=1_790_000_000.0)
    assert decision.class_ == row["expected_class"]
    actions = {"key": decision.key, "provider": decision.provider, "request": decision.request}
    assert actions == row["expected_action"]
