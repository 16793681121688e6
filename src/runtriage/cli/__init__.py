"""The command line. Only :mod:`~runtriage.cli.app` is imported before a command runs."""
