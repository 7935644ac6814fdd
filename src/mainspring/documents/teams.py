"""A team as programs are told of it."""

from __future__ import annotations

from mainspring.documents.values import seconds
from mainspring.model.team import Team


def team_document(team: Team) -> dict[str, object]:
    return {
        "name": team.name,
        "max_pending": team.max_pending,
        "max_schedules": team.max_schedules,
        "interval_seconds": seconds(team.interval),
        "burst": team.burst,
    }
