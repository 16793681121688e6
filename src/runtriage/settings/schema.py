"""What a user may set, as one frozen tree with its defaults."""

from __future__ import annotations

from typing import Annotated

import msgspec

from runtriage.model.vocab import Lang, Level

Budget = Annotated[float, msgspec.Meta(gt=0.0, lt=0.5)]
Size = Annotated[float, msgspec.Meta(gt=0.0, le=1e6)]
Count = Annotated[int, msgspec.Meta(ge=1, le=256)]

MARK_KINDS: tuple[str, ...] = ("tags", "panel", "view")
"""What can be written back: tags of a run, its note block and panel files, and the saved view of the experiment."""

EXECUTORS: tuple[str, ...] = ("serial", "processes", "dask")


class AnalysisSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How runs are judged.

    Attributes
    ----------
    false_alarm_budget
        Chance that a healthy run is called suspicious or worse, over all its metrics and detectors together.
    roles
        Metric names to roles, beating the built-in table.
    ignore_keys
        Further config keys (regular expressions) that do not change training.
    """

    false_alarm_budget: Budget = 0.01
    roles: dict[str, str] = msgspec.field(default_factory=dict)
    ignore_keys: tuple[str, ...] = ()


class SweepSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a sweep goes about it.

    Attributes
    ----------
    write
        What to write back: any of :data:`MARK_KINDS`, or ``all``; empty to only read.
    fail_on
        Verdict from which the exit code is 1; None for never.
    executor
        Where cohorts are analysed: one of :data:`EXECUTORS`, or ``dask:`` and the address of a scheduler or a file.
    readers
        Runs read at the same time, over all workers.
    workers
        Processes of the ``processes`` executor, and of ``dask`` without an address.
    rules
        File of alert rules that are replayed on what is read; empty for none.
    notify
        Apprise URLs that are told what is new on the rules. They hold secrets: they are never shown.
    """

    write: tuple[str, ...] = ()
    fail_on: Level | None = None
    executor: str = "serial"
    readers: Count = 4
    workers: Count = 2
    rules: str = ""
    notify: tuple[str, ...] = ()


class CacheSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where histories pulled from a server are kept.

    Attributes
    ----------
    address
        A folder, or any address that fsspec opens (``s3://BUCKET/FOLDER``); ``off`` to keep none. Empty: the platform's
        folder for caches, made for its owner only.
    max_gb
        Size to keep to, in 10^9 bytes; what was used least recently goes first.
    """

    address: str = ""
    max_gb: Size = 2.0


class ReportSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How reports are written.

    Attributes
    ----------
    lang
        Language of what people read: terminal, page, Markdown, panels and notes. Ids, tags and the keys of JSON stay as
        they are; errors, and the frame of what alert rules tell, are English.
    """

    lang: Lang = Lang.EN


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings."""

    analysis: AnalysisSettings = AnalysisSettings()
    sweep: SweepSettings = SweepSettings()
    cache: CacheSettings = CacheSettings()
    report: ReportSettings = ReportSettings()
