"""The only spelling of what hangs on runs: tag keys, file paths, and names of views.

Trackers may translate these into their vendor's words; nobody else writes them out.
"""

from __future__ import annotations

from runtriage.model.marks import CONFIG_KEY, OWN_PREFIX, USER_KEYS

PREFIX = OWN_PREFIX

STATUS = "runtriage.status"
"""The verdict, one of :class:`~runtriage.model.vocab.Level`."""
FINDINGS = "runtriage.findings"
"""Kinds of the findings that are not explained, worst first, with commas."""
CAUSE = "runtriage.cause"
"""Likeliest cause of the worst finding."""
FIRST_STEP = "runtriage.first_step"
"""First step of the earliest finding that is not explained."""
REASON = "runtriage.reason"
"""Why nothing can be said; only where the verdict is withheld, other verdicts have their note."""
BASELINE = "runtriage.baseline"
"""What the run was compared with: ``cohort:8``, ``self`` or ``none``."""
CONFIG = CONFIG_KEY
"""Fingerprint of the config: runs with the same one are compared, and alert rules in a database find runs by it."""
VERSION = "runtriage.version"
"""Version that judged."""
CURSOR = "runtriage.cursor"
"""The tracker's cursor at the last judgement."""
ALERTS = "runtriage.alerts"
"""What people were told of the alert rules of a run; written by `rules notify` only, left alone by a sweep."""
VIEW = "runtriage.view"
"""On an experiment: our saved view."""

VALUE_LIMIT = 500
"""Characters of a tag value. MLflow holds 8,000, but shows tags as chips."""

PANEL_SVG = "runtriage/panel.svg"
PANEL_HTML = "runtriage/panel.html"
FOLDER = "runtriage/"
VIEW_NAME = "runtriage: flagged runs"


def z_max(role: str) -> str:
    """Return the key that holds the largest z found in a role.

    Examples
    --------
    >>> z_max("grad_norm"), z_max("layer_grad_norm/h.0 attn")
    ('runtriage.grad_norm.z_max', 'runtriage.layer_grad_norm.z_max')
    """
    return f"{PREFIX}{role.partition('/')[0]}.z_max"


def is_own(key: str) -> bool:
    """Tell whether a tag is one that we write: our prefix, and not a key that people set themselves."""
    return key.startswith(PREFIX) and key not in USER_KEYS


def is_own_file(path: str) -> bool:
    """Tell whether a file is one that we write."""
    return path.startswith(FOLDER)
