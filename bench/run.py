"""Run every benchmark and print the table; with `--json FILE` also write the figures."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from attrs import asdict

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import measure, startup

BENCHMARKS = (startup.figures,)


def main() -> int:
    """Print the table; 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    figures = [figure for benchmark in BENCHMARKS for figure in benchmark()]
    print(measure.table(figures))
    if options.json:
        options.json.write_text(json.dumps([asdict(figure) for figure in figures], indent=1) + "\n", encoding="utf-8")
    return 0 if all(figure.holds for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
