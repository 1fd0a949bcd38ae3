"""What `lyma doctor` says of how commands are confined."""

from __future__ import annotations

from pathlib import Path

import pytest

from lyma_server.executor import shell
from lyma_server.isolation import probe
from lyma_server.isolation.probe import IN_CONTAINER, Means
from lyma_server.terminal.doctor import find_program, findings_of_means


@pytest.mark.parametrize(
    ("means", "states", "words"),
    [
        (Means(Path("/usr/bin/bwrap"), "", 7, True), ["ok"], "/usr/bin/bwrap"),
        (Means(None, IN_CONTAINER, 7, True), ["note"], "--security-opt"),
        (Means(None, IN_CONTAINER, 4, True), ["note", "note"], "Linux 6.12"),
        (Means(None, IN_CONTAINER, 0, True), ["bad"], "none runs"),
        (Means(Path("/usr/bin/bwrap"), "", 0, False), ["ok", "note"], "Linux 5.0"),
    ],
)
def test_each_means_is_named_with_its_remedy(means, states, words):
    found = list(findings_of_means(means))
    assert [finding.state for finding in found] == states
    said = " ".join(f"{finding.text} {finding.remedy}" for finding in found)
    assert words in said
    if means.bwrap is None:
        assert means.hindrance in said


def test_the_programs_it_names_are_those_that_are_run_and_none_of_the_path(monkeypatch, tmp_path):
    for name in ("bwrap", "shfmt"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_program("shfmt") == shell.find_shfmt()
    assert find_program("bwrap") == next(map(str, probe.find_bwraps()), None)
