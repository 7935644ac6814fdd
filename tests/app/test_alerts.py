"""Alerts of an app, and of one that is bound to a team."""

from __future__ import annotations

import pytest

from mainspring import Mainspring, Webhook
from mainspring.alerts import AlertState, dead, depth
from mainspring.errors import AlertNotFound, InvalidValue


def own(app: Mainspring) -> list[str]:
    return [one.id for one in app.alerts.list() if not one.id.startswith("mainspring.")]


def test_an_alert_is_added_listed_got_and_removed(app: Mainspring) -> None:
    added = app.alerts.add(
        "mail", depth("mail", above=10), every="10s", hold="1m", notify=[Webhook("https://example.org")]
    )

    assert app.alerts.get("mail") == added
    assert (added.definition.rule, added.state, added.scope) == (depth("mail", above=10), AlertState.OK, None)
    assert added.definition.notify == (Webhook("https://example.org"),)
    assert own(app) == ["mail"]
    app.alerts.remove("mail")
    assert own(app) == []


@pytest.mark.parametrize("call", ["get", "remove"])
def test_one_that_is_not_there_is_said_so(app: Mainspring, call: str) -> None:
    app.alerts.add("letters", dead())

    with pytest.raises(AlertNotFound, match="no alert has the id 'leters', did you mean 'letters'"):
        getattr(app.alerts, call)("leters")


def test_a_bad_id_is_refused(app: Mainspring) -> None:
    for bad in ("", "two words", "@acme/letters"):
        with pytest.raises(InvalidValue, match="expected the id of an alert"):
            app.alerts.add(bad, dead())


def test_teams_see_and_change_their_own_only(app: Mainspring) -> None:
    app.alerts.add("letters", dead())
    for team, above in (("acme", 1), ("other", 2), ("default", 3)):
        app.within(team).alerts.add("letters", dead(above=above))

    of_teams = {
        team: [(one.id, one.scope, one.definition.rule) for one in app.within(team).alerts.list()]
        for team in ("acme", "other", "default", "empty")
    }
    app.within("acme").alerts.remove("letters")

    assert of_teams == {
        "acme": [("letters", "acme", dead(above=1))],
        "other": [("letters", "other", dead(above=2))],
        "default": [("letters", "default", dead(above=3))],
        "empty": [],
    }
    assert own(app) == ["@default/letters", "@other/letters", "letters"]
    assert app.alerts.get("letters").definition.rule == dead()
    with pytest.raises(AlertNotFound, match=r"no alert has the id 'letters'$"):
        app.within("acme").alerts.get("letters")


async def _twins(app: Mainspring) -> list[str]:
    await app.alerts.aadd("letters", dead())
    found = (await app.alerts.aget("letters")).id
    await app.alerts.aremove("letters")
    return [found, *(one.id for one in await app.alerts.alist() if one.id == "letters")]


def test_all_of_it_can_be_awaited(app: Mainspring) -> None:
    import asyncio

    assert asyncio.run(_twins(app)) == ["letters"]
