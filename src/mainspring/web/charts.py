"""What the charts of a history show, drawn and in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import NamedTuple

from mainspring.model.history import SCALES, History, Sample
from mainspring.model.span import span
from mainspring.model.text import counted
from mainspring.web.look import figure
from mainspring.web.plot import Axis, Bar, count_axis, line, slot, stacked, time_axis

_MINUTE = timedelta(minutes=1)
_MARKS = {"1h": timedelta(minutes=15), "24h": timedelta(hours=6), "7d": timedelta(days=2)}


class Key(NamedTuple):
    """How something looks that is drawn, and what it is."""

    looks: str
    words: str


class Spot(NamedTuple):
    """A span of time on a chart, and what it came to, for whoever points at it."""

    left: float
    width: float
    words: str


class Mark(NamedTuple):
    """A place on the axis of time, and how long ago that was."""

    left: float
    words: str


class Chart(NamedTuple):
    """One chart: `now` says how it stands, `about` the same and more to whoever can't see it."""

    name: str
    now: str
    about: str
    keys: Sequence[Key]
    bars: Sequence[Bar]
    spots: Sequence[Spot]
    axis: Axis
    path: str = ""  # of the line, if there is one, which has an axis of its own
    right: Axis | None = None


def draw(history: History) -> list[Chart]:
    """Return the charts of *history*; none when nothing is known yet."""
    if not any(one.succeeded or one.failed or one.retried or one.ready is not None for one in history.samples):
        return []
    return [_throughput(history), _failures(history), _backlog(history), _waits(history)]


def marks(over: str) -> list[Mark]:
    """Return what stands below all charts of a history."""
    back, step = SCALES[over].back, _MARKS[over]
    ages = [step * n for n in reversed(range(back // step + 1))]
    return [Mark(round((1 - age / back) * 100, 2), f"\N{MINUS SIGN}{span(age)}" if age else "now") for age in ages]


def _throughput(history: History) -> Chart:
    minutes = history.span / _MINUTE
    rates = {
        "done": [one.succeeded / minutes for one in history.samples],
        "failed": [one.failed / minutes for one in history.samples],
    }
    ended = [sum(both) for both in zip(*rates.values(), strict=True)]
    axis = count_axis(max(ended))
    now = f"{_rate(ended[-2])} a minute"  # of the last span that is over
    succeeded, failed = sum(one.succeeded for one in history.samples), sum(one.failed for one in history.samples)
    return Chart(
        name="Throughput",
        now=now,
        about=f"{now}, {_rate(max(ended))} at most; {figure(succeeded)} succeeded and {figure(failed)} failed in all",
        keys=[Key("done", "succeeded a minute"), Key("failed", "failed")],
        bars=stacked(rates, axis.top),
        spots=_spots(history, lambda one: f"{figure(one.succeeded)} succeeded, {figure(one.failed)} failed"),
        axis=axis,
    )


def _failures(history: History) -> Chart:
    failed, retried = [one.failed for one in history.samples], [one.retried for one in history.samples]
    axis = count_axis(max(map(sum, zip(failed, retried, strict=True))))
    now = f"{figure(sum(failed))} failed, {figure(sum(retried))} tried again"
    return Chart(
        name="Failures",
        now=now,
        about=f"{counted(sum(failed), 'job')} failed for good, and {counted(sum(retried), 'attempt')} "
        "failed and were made again",
        keys=[Key("failed", "failed for good"), Key("retried", "tried again")],
        bars=stacked({"failed": failed, "retried": retried}, axis.top),
        spots=_spots(history, lambda one: f"{figure(one.failed)} failed, {figure(one.retried)} tried again"),
        axis=axis,
    )


def _backlog(history: History) -> Chart:
    ready = [one.ready or 0 for one in history.samples]
    oldest = [None if one.oldest is None else one.oldest.total_seconds() for one in history.samples]
    axis, right = count_axis(max(ready)), time_axis(max((one for one in oldest if one is not None), default=0))
    seen = [one for one in history.samples[-2:] if one.ready is not None]
    now = _waiting(seen[-1]) if seen else "nobody looked lately"
    return Chart(
        name="Waiting for a worker",
        now=now,
        about=f"{now}; {figure(max(ready))} ready at most, the oldest for {span(_length(oldest))}",
        keys=[Key("ready", "ready jobs"), Key("line", "age of the oldest, right")],
        bars=stacked({"ready": ready}, axis.top),
        spots=_spots(history, lambda one: "nobody looked" if one.ready is None else _waiting(one)),
        axis=axis,
        path=line(oldest, right.top),
        right=right,
    )


def _waits(history: History) -> Chart:
    half = [_seconds(one.wait_p50) for one in history.samples]
    most = [_seconds(one.wait_p99) for one in history.samples]
    axis = time_axis(max(most))
    started = [one for one in history.samples[-2:] if one.wait_p99 is not None]
    now = _waited(started[-1]) if started else "no job started lately"
    return Chart(
        name="Lag from due to start",
        now=now,
        about=f"{now}; 99 % within {span(_length(most))} at worst",
        keys=[Key("half", "half of the jobs within"), Key("most", "99 % within")],
        bars=stacked({"half": half, "most": [a - b for a, b in zip(most, half, strict=True)]}, axis.top),
        spots=_spots(history, lambda one: "no job started" if one.wait_p99 is None else _waited(one)),
        axis=axis,
    )


def _spots(history: History, words: Callable[[Sample], str]) -> list[Spot]:
    places = len(history.samples)
    return [
        Spot(*slot(place, places), f"{one.since:%Y-%m-%d %H:%M} UTC, {span(history.span)}: {words(one)}")
        for place, one in enumerate(history.samples)
    ]


def _rate(number: float) -> str:
    return figure(round(number)) if number >= 10 else f"{number:.2g}"


def _waiting(one: Sample) -> str:
    oldest = one.oldest or timedelta(0)
    return f"{figure(one.ready)} ready, the oldest for {span(oldest)}" if one.ready else "none ready"


def _waited(one: Sample) -> str:
    assert one.wait_p50 is not None
    assert one.wait_p99 is not None
    return f"half within {span(one.wait_p50)}, 99 % within {span(one.wait_p99)}"


def _seconds(length: timedelta | None) -> float:
    return 0.0 if length is None else length.total_seconds()


def _length(seconds: Sequence[float | None]) -> timedelta:
    return timedelta(seconds=max((one for one in seconds if one is not None), default=0))
