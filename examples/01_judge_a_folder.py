# /// script
# requires-python = ">=3.11"
# dependencies = ["runtriage"]
# ///
# ruff: noqa: T201 - a script that prints
"""Judge every run of a folder from Python, and say of each flagged run what may have caused it.

Start it as ``python examples/01_judge_a_folder.py [FOLDER]``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from runtriage.pipeline import triage_cohort
from runtriage.registry import open_source

BUNDLED = Path(__file__).resolve().parent.parent / "src" / "runtriage" / "demo_data" / "runs"


def main(folder: str) -> None:
    """Print one line a run, and the likeliest cause with its check where there is one."""
    source = open_source(f"files:{folder}")
    histories = [source.read(info) for info in source.list_runs()]
    for triage in triage_cohort(histories):
        report = triage.report
        print(f"{report.verdict:<10} {report.run.name:<30} {report.reason}")
        for finding in report.findings:
            for cause in finding.causes[:1]:
                print(f"{'':<10} {cause.id} ({cause.weight:.0%}): {' '.join(cause.verify)}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else str(BUNDLED))
