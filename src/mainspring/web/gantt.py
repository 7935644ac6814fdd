"""When things waited and ran, as bars along an axis of time. Places are in percent, so that it is as wide as fits."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

_STEPS = [
    *(timedelta(milliseconds=size) for size in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    *(timedelta(seconds=size) for size in (1, 2, 5, 10, 15, 30)),
    *(timedelta(minutes=size) for size in (1, 2, 5, 10, 15, 30)),
    *(timedelta(hours=size) for size in (1, 2, 3, 6, 12)),
]
_MOST_LABELS = 6
_NARROWEST = 0.2
"""Percent that a bar has at least, so that what took no time is still seen."""


class Times(NamedTuple):
    """Since when something waited, or would have if it did not run at once, when it started, and when it ended."""

    since: datetime | None
    started: datetime | None
    ended: datetime | None


class Bar(NamedTuple):
    """Where it begins, and how wide it is."""

    left: float
    width: float


class Row(NamedTuple):
    """What is drawn of one thing: nothing of what has not begun."""

    waited: Bar | None
    ran: Bar | None


class Label(NamedTuple):
    """A place on the axis, and how long after the beginning that is."""

    left: float
    after: timedelta


class Chart(NamedTuple):
    """Rows in the order of the times, and what stands on the axis."""

    rows: list[Row]
    labels: list[Label]
    began: datetime | None


def chart(times: Sequence[Times], now: datetime) -> Chart:
    """Return the bars of *times*; what has no end goes on until *now*."""
    known = [moment for one in times for moment in one if moment is not None]
    if not known:
        return Chart([Row(None, None) for _ in times], [], None)
    began = min(known)
    goes_on = any(one.ended is None and (one.since or one.started) for one in times)
    whole = max([*known, now] if goes_on else known) - began or timedelta(milliseconds=1)

    def bar(first: datetime, last: datetime) -> Bar:
        left = min((first - began) / whole * 100, 100 - _NARROWEST)
        return Bar(round(left, 2), round(min(max((last - first) / whole * 100, _NARROWEST), 100 - left), 2))

    def row(one: Times) -> Row:
        until = one.started or one.ended or now
        waited = bar(one.since, until) if one.since is not None and one.since < until else None
        return Row(waited, bar(one.started, one.ended or now) if one.started else None)

    return Chart([row(one) for one in times], _labels(whole), began)


def _labels(whole: timedelta) -> list[Label]:
    """Return a few round lengths of time along *whole*."""
    days = timedelta(days=1)
    step = next((step for step in _STEPS if whole / step < _MOST_LABELS), None)
    if step is None:
        step = days * max(1, -(-whole // (days * (_MOST_LABELS - 1))))
    return [Label(round(step * n / whole * 100, 2), step * n) for n in range(whole // step + 1)]
