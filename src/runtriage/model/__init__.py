"""Nouns, in the order data meets them: address, history, series, baseline, finding, report, marks.

Conventions that hold everywhere
--------------------------------
* Spans are half-open ``[start, stop)`` in the run's own step axis; a change point is the first step of the new regime.
* Steps are int64. Wall time is float seconds since the epoch, UTC.
* A positive z is a larger value than the cohort's; whether larger is worse is said by the role.
* A value that was logged as NaN or infinite is evidence and is kept. A value that was not logged is simply not there.
* Nothing here does I/O, and arrays are read-only once they are in a noun.
"""
