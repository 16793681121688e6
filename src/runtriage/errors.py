"""Every error this package raises on purpose, under one root.

The command line catches :class:`RuntriageError` once, prints ``message``, ``where`` and ``hint`` and leaves with
``exit_code``.
"""

from __future__ import annotations

from typing import ClassVar


class RuntriageError(Exception):
    """Root of all deliberate errors.

    Parameters
    ----------
    message
        What happened, in one sentence, free of secrets.
    where
        The place, as ``$.path``, a file, or a run address; empty if there is none.
    hint
        What the reader can do about it; empty if there is nothing to say.
    """

    exit_code: ClassVar[int] = 2
    at_server: bool = False
    """The server failed with an error of its own, after all tries: it may do so for the next run as well."""

    def __init__(self, message: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(message, where, hint)
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        """Return ``message @ where (hint)`` without the empty parts."""
        text = f"{self.message} @ {self.where}" if self.where else self.message
        return f"{text} ({self.hint})" if self.hint else text


class UsageError(RuntriageError):
    """A command, an address or an option makes no sense."""


class SettingsError(RuntriageError):
    """A settings file, environment variable or flag holds a value that does not validate."""


class CodecError(RuntriageError):
    """A document of ours (report, baseline file) does not have the shape its schema promises."""


class MissingExtraError(RuntriageError):
    """An optional dependency is needed and not installed; ``hint`` names the extra."""


class SourceError(RuntriageError):
    """A source of runs could not be used at all: unreachable, refused, or not what the address says."""

    exit_code: ClassVar[int] = 3


class SourceUnreachableError(SourceError):
    """No answer within the stated time and number of tries."""


class AccessRefusedError(SourceError):
    """The source answered that these credentials may not do this (401, 403)."""


class ClusterError(RuntriageError):
    """The cluster that was to do the work cannot be reached or used."""

    exit_code: ClassVar[int] = 3


class RunReadError(RuntriageError):
    """One run could not be read; the other runs of a sweep go on."""

    exit_code: ClassVar[int] = 4


class RunNotFoundError(RunReadError):
    """The run was listed, or asked for, and is not there any more."""


class AlertWriteError(RuntriageError):
    """One alert could not be put at the tracker or taken away; the others are as planned."""

    exit_code: ClassVar[int] = 4


class MarkWriteError(RuntriageError):
    """Our marks could not be written to one run; its report is still good."""

    exit_code: ClassVar[int] = 4
