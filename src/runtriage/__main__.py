"""``python -m runtriage``."""

from runtriage.cli.app import main

main()
