"""In CI nothing is skipped in silence: a skip is a failure unless its reason is listed here."""

from __future__ import annotations

import os

import pytest

STRICT = os.environ.get("CI") == "true" or os.environ.get("TEST_ALL") == "1"

ALLOWED = {
    "this kernel": "what a kernel lacks cannot be installed",
    "needs root": "the same suite runs as root in another job",
    "needs a plain user": "the same suite runs as a plain user in another job",
}
"""How an allowed reason begins, and why it is allowed."""


def forbidden(reason: str) -> bool:
    return not reason.startswith(tuple(ALLOWED))


def judge(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip whose reason is not allowed into a failure."""
    if not report.skipped or hasattr(report, "wasxfail") or not isinstance(report.longrepr, tuple):
        return
    reason = report.longrepr[2].removeprefix("Skipped: ")
    if STRICT and forbidden(reason):
        report.outcome = "failed"
        report.longrepr = f"skipped, though here everything must run: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    report = yield
    judge(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    report = yield
    judge(report)
    return report
