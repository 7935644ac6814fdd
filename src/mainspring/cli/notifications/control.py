"""`mainspring notifications add`, `remove` and `test`."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from mainspring.app import DEFAULT_URL
from mainspring.cli.apps import app_at
from mainspring.cli.note import note
from mainspring.cli.notifications.look import place, told_rule
from mainspring.cli.notifications.options import Hook, On, RuleId, Secrets, Team, To
from mainspring.cli.options import AsJson, Url
from mainspring.cli.output import complain, say, say_json
from mainspring.cli.values import veiled
from mainspring.documents.told import as_document
from mainspring.errors import InvalidValue, Undelivered
from mainspring.model.channel import DEFAULT_EVENTS, Channel, Email, Webhook
from mainspring.model.team import DEFAULT_TEAM

_NOT_DELIVERED = 1


def add(  # noqa: PLR0913 - one parameter for each option
    rule_id: RuleId,
    email: To = None,
    webhook: Hook = None,
    on: On = None,
    secret: Secrets = None,
    team: Team = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Have people or a program told of what becomes of all jobs of a team. One whose id is known is changed."""
    channel = _channel(email, webhook, on or DEFAULT_EVENTS, secret)
    with app_at(url, team=team) as app:
        note(app, "notification.put", {rule_id: team or DEFAULT_TEAM}, to=channel.place)
        rule = told_rule(app.notifications.add(rule_id, channel))
    if as_json:
        say_json(as_document(rule))
    else:
        say(f"{rule.id}: team {rule.team} tells {place(rule)} on {', '.join(rule.on)}")


def remove(rule_id: RuleId, team: Team = None, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Remove a notification. What is under way goes out."""
    with app_at(url, team=team) as app:
        app.notifications.get(rule_id)  # which says so if there is no such rule
        note(app, "notification.remove", {rule_id: team or DEFAULT_TEAM})
        app.notifications.remove(rule_id)
    if as_json:
        say_json({"removed": rule_id})
    else:
        say(f"{rule_id} removed")


def send_test(rule_id: RuleId, team: Team = None, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Send a word from this machine and now, as the environment says, and tell what came of it."""
    with app_at(url, team=team) as app:
        to = place(told_rule(app.notifications.get(rule_id)))
        note(app, "notification.test", {rule_id: team or DEFAULT_TEAM})
        try:
            answer, problem = app.notifications.test(rule_id), None
        except Undelivered as error:
            answer, problem = {}, str(error)
    if as_json:
        say_json({"delivered": problem is None, "to": to, "error": problem, **answer})
    elif problem is None:
        say(f"{to} has taken it" + "".join(f", {name} {value}" for name, value in answer.items()))
    if problem is not None:
        complain(problem)
        raise typer.Exit(_NOT_DELIVERED)


def _channel(
    email: Sequence[str] | None, webhook: str | None, on: Sequence[str], secret: Sequence[str] | None
) -> Channel:
    if bool(email) == bool(webhook):
        raise InvalidValue(f"expected --email or --webhook, got {'both' if email else 'neither'}")
    if email:
        return Email(email, on=on)
    assert webhook is not None
    return Webhook(veiled(webhook, "--webhook"), on=on, secret=secret)
