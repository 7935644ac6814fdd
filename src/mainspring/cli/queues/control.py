"""`mainspring queues pause`, `resume`, `set` and `give`."""

from __future__ import annotations

from datetime import timedelta

from mainspring.app import DEFAULT_URL
from mainspring.cli.apps import app_at
from mainspring.cli.note import note
from mainspring.cli.options import AsJson, Team, Url
from mainspring.cli.output import say, say_json, warn
from mainspring.cli.pauses import By, Reason, resume_each, tell_paused, who
from mainspring.cli.queues.options import NOBODY, Ageing, QueueName, QueueNames, TeamOrNobody
from mainspring.cli.times import span
from mainspring.cli.values import length
from mainspring.errors import InvalidValue, did_you_mean
from mainspring.model.job import check_name
from mainspring.model.queue import Pausable, ageing_of
from mainspring.model.team import check_team
from mainspring.model.text import shortened


def pause(
    names: QueueNames,
    reason: Reason = None,
    by: By = None,
    team: Team = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Let no worker claim from queues until they are resumed. What runs goes on."""
    for name in names:
        check_name(name, "queue")  # all of them first, so that nothing is half done
    with app_at(url, team=team) as app:
        note(app, "queue.pause", dict.fromkeys(names), reason=reason, by=by)
        known = [queue.name for queue in app.queues.list()]
        paused = [app.queues.pause(name, reason=reason, **who(app, by)) for name in dict.fromkeys(names)]
    tell_paused(paused, as_json)
    for one in paused:
        if one.name not in known:  # which may be meant, of a queue that is to come
            warn(f"queue {one.name} has no jobs and no worker{did_you_mean(one.name, known)}")


def resume(names: QueueNames, team: Team = None, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Let workers claim from queues again."""
    with app_at(url, team=team) as app:
        note(app, "queue.resume", dict.fromkeys(names))
        queues = app.queues
        resume_each(
            Pausable.QUEUE, names, queues.resume, lambda: [one.name for one in queues.list() if one.paused], as_json
        )


def set_queue(
    name: QueueName, ageing: Ageing, team: Team = None, url: Url = DEFAULT_URL, as_json: AsJson = False
) -> None:
    """Say how urgent jobs of a queue go before others: strictly, or with ageing, so that none starves."""
    wanted = _read_ageing(ageing)
    check_name(name, "queue")
    with app_at(url, team=team) as app:
        note(app, "queue.set", [name], ageing=ageing)
        app.queues.set(name, ageing=wanted)
    if as_json:
        say_json({"name": name, "ageing_seconds": None if wanted is None else wanted.total_seconds()})
    elif wanted is None:
        say(f"{name}: priority is strict")
    else:
        say(f"{name}: a point of priority is worth {span(wanted)} of waiting")


def give(name: QueueName, team: TeamOrNobody, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Make a queue a team's own: no other team may enqueue there. Or make it everybody's again."""
    check_name(name, "queue")
    owner = None if team == NOBODY else team
    if owner is not None:
        check_team(owner)
    with app_at(url) as app:
        note(app, "queue.give", [name], to=team)
        app.queues.give(name, owner)
    if as_json:
        say_json({"name": name, "team": owner})
    else:
        say(f"{name} is {f'of team {owner}' if owner else 'for everybody'}")


def _read_ageing(text: str) -> timedelta | None:
    if text.lower() == "off":
        return None
    try:
        return ageing_of(length(text, "--ageing"))
    except InvalidValue:
        raise InvalidValue(
            "expected --ageing to be a length of time like 10m, of 1s or longer, or off for strict priority, "
            f"got: {shortened(text)}"
        ) from None
