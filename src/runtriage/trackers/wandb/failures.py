"""What the W&B client raises, in our words: typed, on one line, without secrets. Part of the door of :mod:`.client`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from runtriage.errors import (
    AccessRefusedError,
    RunNotFoundError,
    RunReadError,
    RuntriageError,
    SourceUnreachableError,
)

_T = TypeVar("_T")
TRIES = 3
"""Times that a question is asked whose answer is cut off."""

_QUERY = re.compile(r"\?[^\s\"')]*")
_USERINFO = re.compile(r"//[^/\s@]*@")
_KEY = re.compile(r"[A-Za-z0-9_-]{32,}|(?i:(basic|bearer)\s+)\S+")
_REFUSED = re.compile(r"permission denied|invalid api key|unauthorized|(http|status|code)\W{0,3}40[13]\b")
_TOO_MANY = re.compile(r"too many requests|(http|status|code)\W{0,3}429\b")
_TIMED_OUT = ("did not respond in time", "context deadline exceeded", "client.timeout exceeded")
_OFFLINE = ("connection refused", "dial tcp", "no such host", "network is unreachable", "connection reset")


@contextmanager
def translated(where: str, *, whole: bool = False) -> Iterator[None]:
    """Turn what the client raises into our errors.

    Parameters
    ----------
    where
        Address for the message.
    whole
        The source as a whole is concerned, not one run of it.

    Raises
    ------
    AccessRefusedError
        401 or 403.
    SourceUnreachableError
        No connection; or, for the source as a whole, no answer; or too many requests, after all retries.
    RunNotFoundError
        The run is not there.
    RunReadError
        Anything else about one run.
    """
    try:
        yield
    except (RuntriageError, GeneratorExit):
        raise
    except Exception as error:  # the client raises a dozen unrelated types, some of them bare
        raise _ours(error, where, whole=whole) from error


def is_refusal(error: Exception) -> bool:
    """Tell whether the server said that it takes no more requests for now."""
    return status_of(error) == 429 or _TOO_MANY.search(_clean(str(error)).lower()) is not None


def _ours(error: Exception, where: str, *, whole: bool) -> RuntriageError:
    inner = getattr(error, "exc", None)
    if isinstance(inner, RuntriageError):  # the client wraps whatever comes its way, also what the pace says
        return inner
    status, text = status_of(error), _clean(str(error))
    low = text.lower()
    if type(error).__name__ == "RunNotFoundError" or (status == 404 and not whole):
        return RunNotFoundError("there is no such run", where=where)
    if type(error).__name__ == "UsageError":
        return AccessRefusedError("there are no W&B credentials", where=where, hint="run `wandb login`")
    if status in (401, 403) or _REFUSED.search(low):
        return AccessRefusedError("W&B refuses these credentials", where=where, hint=text[:200])
    if (why := _silence(status, low, whole=whole)) is not None:
        return SourceUnreachableError(why, where=where, hint=text[:200])
    failed = RunReadError(f"W&B failed: {text[:200]}", where=where)
    failed.at_server = (status or 0) >= 500 or "giving up after" in low
    return failed


def _silence(status: int | None, low: str, *, whole: bool) -> str | None:
    """Return in which way the server as a whole does not answer, None if it does."""
    if status == 429 or _TOO_MANY.search(low):  # after all retries: the other runs would fare no better
        return "W&B takes no more requests for now"
    if any(word in low for word in _TIMED_OUT):
        return "the W&B server did not answer in time, or said to wait for longer"
    if any(word in low for word in _OFFLINE):
        return "the W&B server cannot be reached"
    return "the W&B server did not answer" if whole else None


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status that an error of the client carries, if any."""
    for each in (error, getattr(error, "exc", None), error.__cause__):
        response = getattr(each, "response", None)
        status = getattr(response, "http_status", None) or getattr(response, "status_code", None)
        if status:
            return int(status)
    return None


def _clean(text: str) -> str:
    """Return a message on one line, without signatures of signed addresses and without what looks like a key."""
    return _KEY.sub("…", _USERINFO.sub("//", _QUERY.sub("?…", " ".join(text.split()))))


def again(call: Callable[[], _T], tries: int = TRIES) -> _T:
    """Return what a reading call returns.

    An answer that was cut off, which the client does not retry, is asked for again.
    """
    for left in reversed(range(tries)):
        try:
            return call()
        except Exception as error:
            if not left or "unexpected EOF" not in str(error):
                raise
    raise AssertionError
