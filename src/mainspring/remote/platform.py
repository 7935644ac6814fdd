"""What can be asked of a server beside jobs: tokens, secrets, alerts, and all else that a fleet is ruled by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Unpack

import msgspec

from mainspring.errors import Undelivered, check_known
from mainspring.model.alert import EVERY, Rule
from mainspring.model.breaker import TRIP
from mainspring.model.channel import Channel
from mainspring.model.duration import Duration, duration, spelled
from mainspring.model.job import JobState
from mainspring.model.rate import Rate
from mainspring.model.team import Quotas
from mainspring.model.token import Role
from mainspring.remote.answers import as_kind, asked, listed, part, quoted
from mainspring.remote.documents import (
    Alert,
    Breaker,
    FoundLine,
    Limit,
    Notification,
    Record,
    RetentionRule,
    Secret,
    Team,
    Token,
    Worker,
)
from mainspring.remote.talk import Ask, Talk

_MILLISECOND = timedelta(milliseconds=1)


def create_token(
    name: str, grants: Mapping[str, Role | str], *, expires: Duration | None = None
) -> Talk[tuple[str, Token]]:
    """Make a token; return its text, which is told this once, and what is known of it."""
    body = {"name": name, "grants": dict(grants), "expires": _seconds(expires, "expires")}
    told = yield Ask(method="POST", path="tokens", body=body)
    return str(part(told, "text")), as_kind(part(told, "token"), Token)


def get_token(token_id: str) -> Talk[Token]:
    """Return what is known of the token with this id."""
    return (yield from asked("GET", f"tokens/{quoted(token_id)}", Token))


def tokens() -> Talk[list[Token]]:
    """Return the tokens, oldest first, also those that let nobody in any more."""
    return (yield from listed("tokens", Token))


def revoke_token(token_id: str) -> Talk[Token]:
    """Let nobody in with it from now on, and return what is known of it."""
    return (yield from asked("POST", f"tokens/{quoted(token_id)}/revoke", Token))


def set_secret(name: str, value: str) -> Talk[None]:
    """Keep *value* under *name*, in place of what was kept there."""
    yield Ask(method="PUT", path=f"secrets/{quoted(name)}", body={"value": value}, safe=True)


def secrets() -> Talk[list[Secret]]:
    """Return the team's secrets by name, without their values."""
    return (yield from listed("secrets", Secret))


def remove_secret(name: str) -> Talk[None]:
    """Remove a secret."""
    yield Ask(method="DELETE", path=f"secrets/{quoted(name)}")


def put_alert(
    alert_id: str, rule: Rule, *, every: Duration = EVERY, notify: Sequence[Channel] = (), hold: Duration = 0
) -> Talk[Alert]:
    """Store an alert that looks whether *rule* holds, so often, and return it. One that is known is defined anew."""
    said = {name: _said(value) for name, value in msgspec.structs.asdict(rule).items()}
    body = {
        "rule": {"kind": rule.__struct_config__.tag, **said},
        "every": _seconds(every, "every"),
        "hold": _seconds(hold, "hold"),
        "notify": list(notify),
    }
    told = yield Ask(method="PUT", path=f"alerts/{quoted(alert_id)}", body=body, safe=True)
    return as_kind(told, Alert)


def get_alert(alert_id: str) -> Talk[Alert]:
    """Return the alert with this id."""
    return (yield from asked("GET", f"alerts/{quoted(alert_id)}", Alert))


def alerts() -> Talk[list[Alert]]:
    """Return the alerts, in the order of their ids, with what the last look has found."""
    return (yield from listed("alerts", Alert))


def remove_alert(alert_id: str) -> Talk[None]:
    """Remove it. Nobody is told of it any more, not even that it has resolved."""
    yield Ask(method="DELETE", path=f"alerts/{quoted(alert_id)}")


def put_notification(rule_id: str, channel: Channel) -> Talk[Notification]:
    """Have *channel* told of all jobs and schedules of the team, and return that. One whose id is known is changed."""
    told = yield Ask(method="PUT", path=f"notifications/{quoted(rule_id)}", body=channel, safe=True)
    return as_kind(told, Notification)


def get_notification(rule_id: str) -> Talk[Notification]:
    """Return the notification with this id."""
    return (yield from asked("GET", f"notifications/{quoted(rule_id)}", Notification))


def notifications() -> Talk[list[Notification]]:
    """Return the notifications of the team, by id."""
    return (yield from listed("notifications", Notification))


def remove_notification(rule_id: str) -> Talk[None]:
    """Remove a notification. What is under way goes out."""
    yield Ask(method="DELETE", path=f"notifications/{quoted(rule_id)}")


def test_notification(rule_id: str) -> Talk[Mapping[str, object]]:
    """Have the server send a word to try a channel; return what is kept of the answer, or raise Undelivered."""
    told = yield Ask(method="POST", path=f"notifications/{quoted(rule_id)}/test")
    if not part(told, "delivered"):
        raise Undelivered(str(part(told, "error")))
    return as_kind(part(told, "details"), dict[str, object])


def set_retention(
    *,
    state: JobState | str | None = None,
    queue: str | None = None,
    age: Duration | None = None,
    count: int | None = None,
) -> Talk[RetentionRule]:
    """Keep finished jobs for *age*, or the newest *count* of them, whichever is less; return the rule."""
    body = {"state": state, "queue": queue, "age": _seconds(age, "age"), "count": count}
    told = yield Ask(method="PUT", path="retention", body=body, safe=True)
    return as_kind(told, RetentionRule)


def retention() -> Talk[list[RetentionRule]]:
    """Return the rules, the most precise first."""
    return (yield from listed("retention", RetentionRule))


def remove_retention(*, state: JobState | str | None = None, queue: str | None = None) -> Talk[None]:
    """Take back the rule that covers just that; raise NotFound if there is none."""
    yield Ask(method="DELETE", path="retention", params={"state": state, "queue": queue})


def records(*, before: int | None = None, limit: int = 50) -> Talk[list[Record]]:
    """Return entries of the audit log, the last first; pass the last one's `number` as *before* for more."""
    return (yield from listed("audit", Record, before=before, limit=limit))


def set_team(name: str, **quotas: Unpack[Quotas]) -> Talk[Team]:
    """Say what a team may have, and return that. What is left out stays as it is, None lifts it."""
    check_known(quotas, Quotas, "no quota")
    body = {said: _rate(value) if isinstance(value, Rate) else value for said, value in quotas.items()}
    told = yield Ask(method="PUT", path=f"teams/{quoted(name)}", body=body, safe=True)
    return as_kind(told, Team)


def get_team(name: str) -> Talk[Team]:
    """Return what a team may have."""
    return (yield from asked("GET", f"teams/{quoted(name)}", Team))


def teams() -> Talk[list[Team]]:
    """Return the teams of which something was said, by name."""
    return (yield from listed("teams", Team))


def remove_team(name: str) -> Talk[None]:
    """Forget what was said of a team. What is the team's stays."""
    yield Ask(method="DELETE", path=f"teams/{quoted(name)}")


def set_queue(name: str, *, ageing: Duration | None) -> Talk[None]:
    """Let each point of priority be worth so much waiting in a queue, so that no job starves; None for strict ones."""
    yield Ask(method="PUT", path=f"queues/{quoted(name)}", body={"ageing": _seconds(ageing, "ageing")}, safe=True)


def give_queue(name: str, team: str | None) -> Talk[None]:
    """Make a queue a team's own: other teams enqueue nothing more there. None makes it everybody's."""
    yield Ask(method="PUT", path=f"queues/{quoted(name)}/owner", body={"team": team}, safe=True)


def pause_task(task: str, *, reason: str | None = None) -> Talk[None]:
    """Let no worker claim jobs of a task until `resume`; what runs goes on."""
    yield Ask(method="POST", path=f"tasks/{quoted(task)}/pause", body=None if reason is None else {"reason": reason})


def resume_task(task: str) -> Talk[bool]:
    """Let workers claim the jobs of a task again; return whether it was paused."""
    told = yield Ask(method="POST", path=f"tasks/{quoted(task)}/resume")
    return bool(part(told, "resumed"))


def limits() -> Talk[list[Limit]]:
    """Return the limits that jobs have come to lately, by key."""
    return (yield from listed("limits", Limit))


def release_limit(key: str) -> Talk[int]:
    """Make all jobs ready that wait for the limit with this key; return how many did."""
    told = yield Ask(method="POST", path=f"limits/{quoted(key)}/release")
    return int(part(told, "released"))


def breakers() -> Talk[list[Breaker]]:
    """Return the breakers under which something has failed lately, or that a person tripped, by key."""
    return (yield from listed("breakers", Breaker))


def trip_breaker(key: str, *, lasting: Duration = TRIP, reason: str | None = None) -> Talk[Breaker]:
    """Open the breaker: no job starts under it for so long."""
    body = {"lasting": _seconds(lasting, "lasting"), "reason": reason}
    return (yield from asked("POST", f"breakers/{quoted(key)}/trip", Breaker, body))


def reset_breaker(key: str, *, all: bool = False) -> Talk[Breaker]:  # noqa: A002 - as in the app
    """Close the breaker, and return it. Jobs that wait for it go on one after the other, or with *all* all at once."""
    return (yield from asked("POST", f"breakers/{quoted(key)}/reset", Breaker, {"all": all}))


def workers() -> Talk[list[Worker]]:
    """Return the workers that were not closed or reaped, oldest first."""
    return (yield from listed("workers", Worker))


def logs(
    *,
    contains: str | None = None,
    level: str | None = None,
    task: str | None = None,
    since: Duration | datetime = "1h",
    limit: int = 100,
) -> Talk[list[FoundLine]]:
    """Return what jobs have logged lately, newest first: what *contains* a text, or is of a *level* on.

    *since* is an instant, or how long ago that is.
    """
    begun = since.isoformat() if isinstance(since, datetime) else spelled(duration(since, "since"))
    match: dict[str, Any] = {"contains": contains, "level": level, "task": task}
    return (yield from listed("logs", FoundLine, **match, since=begun, limit=limit))


def _seconds(length: Duration | None, name: str) -> float | None:
    return None if length is None else duration(length, name).total_seconds()


def _said(value: object) -> object:
    return spelled(value) if isinstance(value, timedelta) else value


def _rate(rate: Rate) -> str:
    return f"{rate.count}/{round(rate.per / _MILLISECOND)}ms"
