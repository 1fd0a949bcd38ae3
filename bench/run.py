"""Run the benchmarks, or those that are named, and print the tables.

With `--json FILE` also write the figures; with `--document` put the tables of all into docs/performance.md.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import platform
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from attrs import asdict

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import agents, cold, commands, measure, sessions, shares, startup, verdicts
from bench.router import contest

BENCHMARKS = {
    "startup": startup.report,
    "cold": cold.report,
    "router": contest.report,
    "verdicts": verdicts.report,
    "commands": commands.report,
    "sessions": sessions.report,
    "agents": agents.report,
    "shares": shares.report,
}
ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "docs/performance.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def main() -> int:
    """Print the tables; 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}; all where none is named")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--document", action="store_true", help="put the tables into docs/performance.md")
    options = parser.parse_args()
    unknown = set(options.names) - set(BENCHMARKS)
    if unknown:
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}")
    if options.document and options.names:
        parser.error("the document holds all figures, so --document goes with no name")
    compileall.compile_dir(ROOT / "lyma_server", quiet=1)  # as an installer does
    reports = [BENCHMARKS[name]() for name in options.names or BENCHMARKS]
    figures = [figure for report in reports for figure in report.figures]
    text = "\n\n".join([measure.table(figures), *(report.table for report in reports if report.table)])
    print(text)
    if options.json:
        options.json.write_text(json.dumps([asdict(figure) for figure in figures], indent=1) + "\n", encoding="utf-8")
    if options.document:
        document(text)
    return 0 if all(figure.holds for figure in figures) else 1


def document(text: str) -> None:
    """Put what was measured, with the date, the machine and the versions, between the marks of the document."""
    before, _, rest = DOCUMENT.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    measured = f"{BEGIN}\n{_circumstances()}\n\n{text}\n{END}"
    DOCUMENT.write_text(before + measured + after, encoding="utf-8")


def _circumstances() -> str:
    processor = next(
        (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.machine(),
    )
    packages = ", ".join(f"{name} {_version(name)}" for name in ("anthropic", "openai", "httpx2", "pygls"))
    busy = f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"
    return f"{time.strftime('%Y-%m-%d')}, {processor}, {busy}, Python {platform.python_version()}, {packages}."


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "(none)"


if __name__ == "__main__":
    sys.exit(main())
