# /// script
# requires-python = ">=3.11"
# dependencies = ["runtriage"]
# ///
# ruff: noqa: T201 - a script that prints
"""Learn from runs that are known, then let a new one of the same config pass or not: a gate for a pipeline.

The bundled conformer runs stand for both: three are the past, one is the candidate. Start it as
``python examples/02_gate_a_run.py [RUN]``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from runtriage.model.vocab import Level, at_least
from runtriage.pipeline import learn, triage_cohort
from runtriage.registry import open_source

BUNDLED = Path(__file__).resolve().parent.parent / "src" / "runtriage" / "demo_data" / "runs"
PAST = ("ap_confln_base_s1", "ap_confln_base_s3", "ap_confln_base_s4")


def main(candidate: str) -> int:
    """Return 0 if the candidate behaves as the past did, else 1."""
    source = open_source(f"files:{BUNDLED}")
    baselines = learn([source.read(source.find_run(name)) for name in PAST], source=source.address)
    (triage,) = triage_cohort([source.read(source.find_run(candidate))], baselines=baselines)
    print(f"{candidate}: {triage.report.verdict}. {triage.report.reason}")
    return 1 if at_least(triage.report.verdict, Level.SUSPICIOUS) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "ap_confln_base_s0"))
