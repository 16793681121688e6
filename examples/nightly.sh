#!/bin/sh
# Judge an experiment every night and write the verdicts back; mail from cron tells only when something is broken.
#   0 6 * * *  /path/to/nightly.sh mlflow:pretraining
# MLFLOW_TRACKING_URI names the server. Exit codes: 1 broken runs, 3 server down, 4 some runs could not be read or written.
set -u
reports=$(mktemp) || exit 2
trap 'rm -f "$reports"' EXIT
runtriage sweep "$1" --write "${2-all}" --fail-on broken >"$reports" 2>&1
code=$?
[ "$code" -eq 0 ] || cat "$reports"
exit "$code"
