"""A sweep from a login node, whose workers are Slurm jobs that come and go; needs dask-jobqueue."""  # noqa: INP001

from __future__ import annotations

import subprocess
import sys

from dask_jobqueue import SLURMCluster

WORKERS = {"queue": "cpu", "cores": 4, "processes": 4, "memory": "8GB", "walltime": "01:00:00"}


def main() -> int:
    """Sweep and return the exit code."""
    with SLURMCluster(**WORKERS, scheduler_options={"dashboard": False, "dashboard_address": ":0"}) as cluster:
        cluster.adapt(minimum_jobs=1, maximum_jobs=8)
        words = ["sweep", "mlflow:pretraining", "--write", "all", "--fail-on", "broken"]
        words += ["--executor", f"dask:{cluster.scheduler_address}"]
        return subprocess.run([sys.executable, "-m", "runtriage", *words], check=False).returncode  # noqa: S603


if __name__ == "__main__":
    sys.exit(main())
