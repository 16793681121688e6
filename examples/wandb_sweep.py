# /// script
# requires-python = ">=3.11"
# dependencies = ["runtriage[wandb]"]
# ///
"""Judge every run of a W&B project and print one line each; nothing is written.

Host and key are found as wandb finds them (`wandb login`). Usage: `python wandb_sweep.py wandb://ENTITY/PROJECT`.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

from runtriage.errors import RuntriageError
from runtriage.pipeline import triage_cohort
from runtriage.registry import open_source


def main(address: str) -> int:
    """Read all runs, eight at a time, and print their verdicts."""
    source = open_source(address)
    try:
        with ThreadPoolExecutor(8) as pool:
            histories = list(pool.map(source.read, source.list_runs()))
        for triage in triage_cohort(histories):
            print(f"{triage.report.run.id!r}: {triage.report.verdict.value}: {triage.report.reason}")  # noqa: T201
    except RuntriageError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return error.exit_code
    finally:
        source.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else __doc__)
