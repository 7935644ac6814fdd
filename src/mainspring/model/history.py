"""History: what became of jobs and what waited, over an hour, a day or a week, in equal spans of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from mainspring.errors import InvalidValue
from mainspring.model.text import shortened

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Scale(NamedTuple):
    """How far back a history goes, and how long each of its spans is."""

    back: timedelta
    span: timedelta

    def starts(self, now: datetime) -> list[datetime]:
        """Return when each span began of the one that goes back from *now*, oldest first."""
        last = span_start(now, self.span)
        return [last - self.span * n for n in reversed(range(self.back // self.span))]


SCALES = MappingProxyType(
    {
        "1h": Scale(timedelta(hours=1), timedelta(minutes=1)),
        "24h": Scale(timedelta(hours=24), timedelta(minutes=15)),
        "7d": Scale(timedelta(days=7), timedelta(hours=2)),
    }
)
"""By what people call them. Each is stored by itself: none takes more than a hundred rows of a queue to tell."""


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the span that began at `since`.

    Counted is what workers settle, and what fails because its workers died; not a workflow, which ends with its
    members, nor what is cancelled or expires while it waits. `ready` and `oldest` are the most that was seen in it of
    each queue, and None where nobody looked; the waits are from when jobs were due until they started, and None where
    none did.
    """

    since: datetime
    succeeded: int = 0
    failed: int = 0  # for good
    retried: int = 0  # attempts that failed, and are made again
    ready: int | None = None
    oldest: timedelta | None = None  # for how long the job had been ready that was so for longest
    wait_p50: timedelta | None = None
    wait_p99: timedelta | None = None


class History(msgspec.Struct, frozen=True, kw_only=True):
    """Samples without a gap, oldest first, the last of which is of the span that is not over yet."""

    over: str
    span: timedelta
    samples: Sequence[Sample]


def scale(over: str) -> Scale:
    """Return the scale that is called *over*."""
    if over not in SCALES:
        raise InvalidValue(f"expected over to be one of {', '.join(SCALES)}, got: {shortened(over)}")
    return SCALES[over]


def span_start(moment: datetime, span: timedelta) -> datetime:
    """Return when that *span* began in which *moment* lies."""
    return moment - (moment - _EPOCH) % span
