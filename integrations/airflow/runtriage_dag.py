"""Airflow 3: sweeps every hour. The worker needs runtriage on its PATH and MLFLOW_TRACKING_URI in its environment."""  # noqa: INP001

from datetime import datetime, timedelta, timezone

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

with DAG(
    dag_id="runtriage",
    schedule="17 * * * *",
    start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),  # noqa: UP017  Airflow's own spelling
    catchup=False,  # a sweep looks at what is there now: hours missed are not made up for
    max_active_runs=1,
    default_args={"retries": 1, "retry_delay": timedelta(minutes=5), "execution_timeout": timedelta(hours=2)},
):
    # A sweep can be repeated: what has not changed is left alone. The task fails if a run is broken (1), the tracker
    # cannot be reached (3) or the sweep failed in part (4).
    BashOperator(
        task_id="sweep",
        bash_command="runtriage sweep mlflow:pretraining --write all --fail-on broken",
        append_env=True,
    )
