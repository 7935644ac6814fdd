"""What commands change is on record before they do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mainspring.app import Mainspring
from mainspring.cli.apps import App
from mainspring.documents.told import ToldJob
from mainspring.model.audit import Entry
from mainspring.model.schedule import Schedule
from mainspring.model.team import DEFAULT_TEAM
from mainspring.model.text import storable
from mainspring.service import person


def note(app: App, action: str, targets: Iterable[str | None], **details: object) -> None:
    """Put on record that the user of this process asks for *action*, an entry for each of the *targets*.

    These may be a mapping to the names of the teams whose they are. What is None of the *details* is left out. A server
    keeps its own record, of who shows which token.
    """
    if not isinstance(app, Mainspring):
        return
    teams = targets if isinstance(targets, Mapping) else {}
    app.audit.record([entry(action, target, teams.get(target), **details) for target in targets])


def entry(action: str, target: str | None, team: str | None, **details: object) -> Entry:
    """Return what is to be on record: that the user of this process asks for *action*, likewise."""
    return Entry(person(), action, target, team, {name: _told(it) for name, it in details.items() if it is not None})


def teams_of(found: Iterable[ToldJob | Schedule]) -> dict[str, str]:
    """Return the ids of jobs or schedules, each with the name of its team."""
    return {str(one.id): _team_of(one) for one in found}


def _team_of(one: ToldJob | Schedule) -> str:
    return one.team if isinstance(one, ToldJob) else one.definition.team or DEFAULT_TEAM


def _told(value: object) -> object:
    # What was typed may hold what no text can, and must not keep the rest from being recorded.
    return storable(value) if isinstance(value, str) else value
