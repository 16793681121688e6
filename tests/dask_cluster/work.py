"""Work that workers of the tests can import."""

from __future__ import annotations

import os
import signal
import time

from runtriage.sweep.elsewhere import CohortJob, do
from runtriage.sweep.outcome import Outcome


def slow(job: CohortJob) -> list[Outcome]:
    """Work as ever, and long enough to be killed meanwhile."""
    time.sleep(0.5)
    return do(job)


def deadly(job: CohortJob) -> list[Outcome]:
    """Kill the worker over one cohort."""
    if any(info.id.startswith("2-") for info in job.infos):
        os.kill(os.getpid(), signal.SIGKILL)
    return do(job)


def timed(job: CohortJob) -> tuple[float, list[Outcome]]:
    """Work as ever, and tell how many seconds that took."""
    start = time.perf_counter()
    outcomes = do(job)
    return time.perf_counter() - start, outcomes
