"""`mainspring teams set` and `remove`."""

from __future__ import annotations

from typing import Annotated, cast

import typer

from mainspring.app import DEFAULT_URL
from mainspring.cli.apps import app_at
from mainspring.cli.note import note
from mainspring.cli.options import AsJson, Url
from mainspring.cli.output import say, say_json
from mainspring.cli.teams.list import told
from mainspring.cli.values import whole_number
from mainspring.documents.teams import team_document
from mainspring.errors import InvalidValue
from mainspring.model.rate import rate as read_rate
from mainspring.model.team import Quotas, Team, check_team, with_quotas
from mainspring.model.text import shortened

TeamName = Annotated[str, typer.Argument(metavar="TEAM", help="The name of the team.")]
MaxPending = Annotated[
    str | None, typer.Option("--max-pending", metavar="N|off", help="How many jobs it may have that have not ended.")
]
MaxSchedules = Annotated[
    str | None, typer.Option("--max-schedules", metavar="N|off", help="How many schedules it may have.")
]
RateText = Annotated[
    str | None, typer.Option("--rate", metavar="RATE|off", help="How fast it may send jobs: 100/s, 20/m, 5/h.")
]
Burst = Annotated[
    int | None, typer.Option("--burst", metavar="N", help="How many may come together; as the rate says unless given.")
]


def set_team(  # noqa: PLR0913 - one parameter for each option
    name: TeamName,
    max_pending: MaxPending = None,
    max_schedules: MaxSchedules = None,
    rate: RateText = None,
    burst: Burst = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Say what a team may have. What is left out stays as it is, and off lifts it."""
    check_team(name)
    given = {
        "max_pending": _number(max_pending, "--max-pending"),
        "max_schedules": _number(max_schedules, "--max-schedules"),
        "rate": None if rate is None or rate == "off" else read_rate(rate, "--rate"),
        "burst": burst,
    }
    said = {"max_pending": max_pending, "max_schedules": max_schedules, "rate": rate, "burst": burst}
    quotas = cast("Quotas", {option: given[option] for option, text in said.items() if text is not None})
    with_quotas(Team(name), quotas)
    with app_at(url) as app:
        note(app, "team.set", {name: name}, **said)
        team = app.teams.set(name, **quotas)
    if as_json:
        say_json(team_document(team))
    else:
        say(f"{name} may have {told(team)}")


def remove(name: TeamName, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Forget what was said of a team, which may then have as much as it likes. Its jobs stay."""
    with app_at(url) as app:
        app.teams.get(name)
        note(app, "team.remove", {name: name})
        app.teams.remove(name)
    if as_json:
        say_json({"removed": name})
    else:
        say(f"{name} may have as much as it likes")


def _number(text: str | None, option: str) -> int | None:
    if text is None or text == "off":
        return None
    number = whole_number(text)
    if number is None:
        raise InvalidValue(
            f"expected {option} to be a whole number from 0 to 999,999,999, or off, got: {shortened(text)}"
        )
    return number
