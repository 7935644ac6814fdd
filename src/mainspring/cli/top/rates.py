"""How fast jobs end, by what workers tell of that."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from mainspring.model.history import History


class Rates(NamedTuple):
    """How many jobs a second have finished, and how many of these have failed for good."""

    finished: float
    failed: float


def rates_of(history: History, now: datetime) -> Rates:
    """Return the rates of the last whole minute and what there is of this one, which alone would say little.

    *now* is by our own clock, which may be wrong, while the minutes are the database's.
    """
    last = history.samples[-2:]
    seconds = min(max(now - last[0].since, history.span), 2 * history.span).total_seconds()
    failed = sum(one.failed for one in last)
    return Rates((sum(one.succeeded for one in last) + failed) / seconds, failed / seconds)
