"""Heat: how many ticks each minute of the coming week has, so that a herd can be seen before it stampedes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate, islice

import msgspec

from mainspring.clock import EPOCH
from mainspring.model.schedule import MICROSECOND, Definition, Schedule
from mainspring.model.trigger import After, Cron, Every, Trigger, ticks

MINUTES = 7 * 24 * 60
BUDGET = 200_000
"""Minutes to look at for a heat map, over all triggers. A trigger takes up to a week of them."""

MINUTE = timedelta(minutes=1)
LEVELS = 5
"""How many shades a heat map has."""


class Minute(msgspec.Struct, frozen=True):
    """A minute, and what is to be expected of it: a tick with jitter counts for a part in each minute it may come."""

    at: datetime
    ticks: float
    schedules: float


class Heat(msgspec.Struct, frozen=True):
    """Ticks, and schedules that fire, in each minute of the week from *begin* on.

    When the budget ran out, `left_out` schedules were not counted.
    """

    begin: datetime
    ticks: Sequence[float]
    schedules: Sequence[float]
    left_out: int = 0

    def busiest(self, most: int) -> list[Minute]:
        """Return the *most* minutes with the most ticks, the first of equal ones first."""
        order = sorted(range(MINUTES), key=lambda number: -self.ticks[number])
        return [self._minute(number) for number in order[:most] if self.ticks[number]]

    def peaks(self) -> dict[tuple[str, int], float]:
        """Return the ticks of the busiest minute, by day of the week and hour, in UTC.

        The week begins now, so the hours of today that have passed are those of the same day next week.
        """
        peaks: dict[tuple[str, int], float] = {}
        for number, amount in enumerate(self.ticks):
            at = self.begin + number * MINUTE
            place = at.strftime("%a"), at.hour
            peaks[place] = max(amount, peaks.get(place, 0.0))
        return peaks

    def days(self) -> list[str]:
        """Return the days of the week, from today on."""
        return [(self.begin + timedelta(days=number)).strftime("%a") for number in range(7)]

    def _minute(self, number: int) -> Minute:
        return Minute(self.begin + number * MINUTE, self.ticks[number], self.schedules[number])


def bounds(peaks: Sequence[float]) -> list[int]:
    """Return the upper ends of up to five levels, each larger by the same factor: a midnight must not hide the rest."""
    lowest, highest = min(peaks), max(peaks)
    between = (math.floor(lowest * (highest / lowest) ** (level / LEVELS)) for level in range(1, LEVELS))
    return sorted({*(bound for bound in between if bound >= lowest), math.ceil(highest)})


def expected(amount: float) -> str:
    """Return a number of a minute as people read it: what jitter makes an average of must not pass for a count."""
    if amount == int(amount):
        return f"{amount:,.0f}"
    return f"about {amount:,.0f}" if amount >= 1 else "less than 1"


class _Times(msgspec.Struct, frozen=True):
    """What decides when a schedule fires; those that have it in common are looked at once."""

    trigger: Trigger
    jitter: timedelta
    start: datetime | None
    end: datetime | None


class _Stretch(msgspec.Struct, frozen=True):
    """Minutes with the same number of ticks each, and the share of a schedule that fires in each."""

    first: int
    last: int
    ticks: float
    share: float


def heat(schedules: Sequence[Schedule], now: datetime, budget: int = BUDGET) -> Heat:
    """Return when *schedules* fire in the coming week, those most alike first should the budget run out."""
    begin = now.astimezone(UTC).replace(second=0, microsecond=0)
    alike = Counter(_times(one.definition) for one in schedules if not (one.paused or one.ended))
    loads, left_out = (_Load(), _Load()), 0
    for times, count in alike.most_common():
        stretches = list(islice(_stretches(times, begin), budget + 1))
        if len(stretches) > budget:
            left_out += count
        else:
            for stretch in stretches:
                loads[0].add(stretch, count * stretch.ticks)
                loads[1].add(stretch, count * stretch.share)
        budget = max(0, budget - len(stretches))
    return Heat(begin, loads[0].by_minute(), loads[1].by_minute(), left_out)


class _Load:
    """A sum of stretches. Only their ends are noted, so a long one costs no more than a short one."""

    def __init__(self) -> None:
        self._steps = [0.0] * (MINUTES + 1)

    def add(self, stretch: _Stretch, amount: float) -> None:
        self._steps[stretch.first] += amount
        self._steps[min(MINUTES, stretch.last + 1)] -= amount

    def by_minute(self) -> list[float]:
        return [round(amount, 6) for amount in accumulate(self._steps[:MINUTES])]


def _times(definition: Definition) -> _Times:
    return _Times(definition.trigger, definition.jitter, definition.start, definition.end)


def _stretches(times: _Times, begin: datetime) -> Iterator[_Stretch]:
    start, last = max(begin, times.start or begin), begin + MINUTES * MINUTE - MICROSECOND
    last = min(last, times.end or last)
    tick = times.trigger.next(start - MICROSECOND)
    if tick is None or tick > last:
        return
    rate = _even_rate(times.trigger)
    if rate is not None:
        yield _Stretch((tick - begin) // MINUTE, (last - begin) // MINUTE, rate, min(1.0, rate))
        return
    each, wide = _ticks_in_minute(times.trigger, tick), max(1, math.ceil(times.jitter / MINUTE))
    while tick is not None and tick <= last:
        number = (tick - begin) // MINUTE
        yield _Stretch(number, number + wide - 1, each / wide, 1 / wide)
        tick = times.trigger.next(begin + (number + 1) * MINUTE - MICROSECOND)


def _even_rate(trigger: Trigger) -> float | None:
    """Return how many ticks *trigger* has in every minute, if these are alike. Jobs are taken to need no time."""
    if isinstance(trigger, After) or (isinstance(trigger, Every) and trigger.length <= MINUTE):
        return MINUTE / trigger.length
    if isinstance(trigger, Cron) and trigger.expression.split()[-5:] == ["*"] * 5:
        return _ticks_in_minute(trigger, EPOCH)
    return None


def _ticks_in_minute(trigger: Trigger, moment: datetime) -> int:
    """Return how many ticks are in the minute of *moment*. A cron expression has as many in each where it has any."""
    minute = moment.replace(second=0, microsecond=0)
    return sum(1 for _ in ticks(trigger, minute - MICROSECOND, minute + MINUTE - MICROSECOND))
