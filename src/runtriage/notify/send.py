"""Delivery through Apprise: Slack, Teams, e-mail, Feishu, DingTalk, webhooks and a hundred more, each by its URL.

The URLs hold tokens and passwords. No message of ours says more of one than its place in the list and its scheme.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Any

from runtriage.errors import MissingExtraError, UsageError
from runtriage.model.vocab import Severity
from runtriage.notify.message import Message

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_KIND = {Severity.INFO: "info", Severity.WARNING: "warning", Severity.CRITICAL: "failure"}


class Sender:
    """Sends messages to some addresses.

    Parameters
    ----------
    urls
        Apprise URLs.

    Raises
    ------
    MissingExtraError
        Apprise is not installed.
    UsageError
        A URL that Apprise does not understand.
    """

    def __init__(self, urls: Sequence[str]) -> None:
        try:
            import apprise  # noqa: PLC0415  an optional package
        except ImportError:
            raise MissingExtraError(
                "notifications need Apprise", hint="pip install 'runtriage[notify]'"
            ) from None
        # Its log lines name hosts and, at some levels, parts of URLs.
        logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)
        self._targets: list[tuple[str, Any]] = []
        for place, url in enumerate(urls, start=1):
            target = apprise.Apprise.instantiate(url, suppress_exceptions=True)
            if target is None:
                hint = "the forms are listed at github.com/caronc/apprise"
                raise UsageError(f"this is no address that Apprise knows: {shown(place, url)}", where="--to", hint=hint)
            self._targets.append((shown(place, url), target))

    def __len__(self) -> int:
        """Return the number of addresses."""
        return len(self._targets)

    def send(self, message: Message) -> tuple[str, ...]:
        """Send one message to every address and return those that did not take it, without their secrets."""
        return tuple(name for name, target in self._targets if not _sent(target, message))


def shown(place: int, url: str) -> str:
    """Return what may be said of an address: its place in the list and its scheme.

    Examples
    --------
    >>> shown(2, "slack://TokenA/TokenB/TokenC")
    'address 2 (slack)'
    """
    scheme = _SCHEME.match(url.strip())
    return f"address {place} ({scheme[1].lower() if scheme else 'no scheme'})"


def _sent(target: Any, message: Message) -> bool:
    try:
        kind = _KIND[message.severity]
        return bool(target.notify(title=message.title, body=message.body, notify_type=kind, body_format="text"))
    except Exception:  # noqa: BLE001  the delivery boundary; what a plugin says may hold secrets
        return False
