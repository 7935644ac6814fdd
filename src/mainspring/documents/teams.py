"""A team as programs are told of it."""

from __future__ import annotations

from datetime import timedelta

from mainspring.documents.values import Told
from mainspring.model.rate import rate
from mainspring.model.team import Team

_UNITS = {
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}
_MILLISECOND = timedelta(milliseconds=1)
_MOST_TRIED = 10_000


def team_document(team: Team) -> dict[str, object]:
    return {
        "name": team.name,
        "max_pending": team.max_pending,
        "max_schedules": team.max_schedules,
        "rate": None if team.interval is None else _rate(team.interval),
        "burst": team.burst,
    }


def team_of(told: Told) -> Team:
    interval = None if told["rate"] is None else rate(told["rate"]).interval
    return Team(told["name"], told["max_pending"], told["max_schedules"], interval, told["burst"])


def _rate(interval: timedelta) -> str:
    """Return the rate that has this *interval*, as it is set: only that is kept, to a millionth of a second."""
    for name, unit in _UNITS.items():
        count = round(unit / interval)
        if count and unit / count == interval:
            return f"{count}/{name}"
    for count in range(1, _MOST_TRIED):
        length = round(count * interval / _MILLISECOND)
        if length * _MILLISECOND / count == interval:
            return f"{count}/{length}ms"
    return f"1/{max(1, round(interval / _MILLISECOND))}ms"
