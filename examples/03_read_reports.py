# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
# ruff: noqa: T201 - a script that prints
"""Count what a sweep found, from its reports, with the standard library alone: a report is plain JSON, one a line.

Start it as ``python examples/03_read_reports.py reports.jsonl`` after ``runtriage sweep SOURCE --json reports.jsonl``.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path


def main(path: str) -> None:
    """Print the verdicts, and for each kind of finding the runs that have it."""
    reports = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    print(", ".join(f"{count} {verdict}" for verdict, count in Counter(r["verdict"] for r in reports).most_common()))
    found: dict[str, list[str]] = {}
    for report in reports:
        for finding in report["findings"]:
            if finding["explained_by"] is None:
                found.setdefault(finding["kind"], []).append(report["run"]["name"])
    for kind, names in sorted(found.items()):
        print(f"{kind}: {', '.join(sorted(set(names)))}")


if __name__ == "__main__":
    main(sys.argv[1])
