"""Where work is done: one after the other, in threads (reading), in processes (analysis)."""

from runtriage.sweep.executors.base import Executor
from runtriage.sweep.executors.pool import ProcessExecutor, ThreadExecutor
from runtriage.sweep.executors.serial import SerialExecutor

__all__ = ["Executor", "ProcessExecutor", "SerialExecutor", "ThreadExecutor"]
