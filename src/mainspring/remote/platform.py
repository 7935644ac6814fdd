"""What can be asked of a server beside jobs: tokens, secrets, alerts, and all else that a fleet is ruled by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Unpack

import msgspec

from mainspring.documents.audit import record_of
from mainspring.documents.history import history_of
from mainspring.documents.jobs import found_of
from mainspring.documents.limits import breaker_of, limit_of
from mainspring.documents.queues import pause_of
from mainspring.documents.retention import rule_of
from mainspring.documents.secrets import secret_of
from mainspring.documents.teams import team_of
from mainspring.documents.tokens import token_of
from mainspring.documents.told import ToldAlert, ToldNotification, as_told
from mainspring.documents.workers import worker_of
from mainspring.errors import Undelivered, check_known
from mainspring.model.alert import EVERY, Rule
from mainspring.model.audit import Record
from mainspring.model.breaker import TRIP, BreakerStatus
from mainspring.model.channel import Channel
from mainspring.model.duration import Duration, duration, spelled
from mainspring.model.history import History
from mainspring.model.job import JobState
from mainspring.model.journal import FoundLine
from mainspring.model.limits import LimitStatus
from mainspring.model.queue import Pausable, Pause
from mainspring.model.rate import Rate
from mainspring.model.retention import RetentionRule
from mainspring.model.secret import Secret, check_secret_name, check_secret_value
from mainspring.model.session import Session
from mainspring.model.team import Quotas, Team
from mainspring.model.token import Role, Token
from mainspring.remote.answers import as_kind, as_value, asked, listed, paged, part, quoted
from mainspring.remote.talk import Ask, Talk

_MILLISECOND = timedelta(milliseconds=1)


def create_token(
    name: str, grants: Mapping[str, Role | str], *, expires: Duration | None = None
) -> Talk[tuple[str, Token]]:
    """Make a token; return its text, which is told this once, and what is known of it."""
    body = {"name": name, "grants": dict(grants), "expires": _seconds(expires, "expires")}
    told = yield Ask(method="POST", path="tokens", body=body)
    return str(part(told, "text")), as_value(part(told, "token"), token_of)


def get_token(token_id: str) -> Talk[Token]:
    """Return what is known of the token with this id."""
    return (yield from asked("GET", f"tokens/{quoted(token_id)}", token_of))


def tokens() -> Talk[list[Token]]:
    """Return the tokens, oldest first, also those that let nobody in any more."""
    return (yield from listed("tokens", token_of))


def revoke_token(token_id: str) -> Talk[Token]:
    """Let nobody in with it from now on, and return what is known of it."""
    return (yield from asked("POST", f"tokens/{quoted(token_id)}/revoke", token_of))


def set_secret(name: str, value: str) -> Talk[None]:
    """Keep *value* under *name*, in place of what was kept there."""
    check_secret_name(name)
    check_secret_value(value)
    yield Ask(method="PUT", path=f"secrets/{quoted(name)}", body={"value": value}, safe=True)


def secrets() -> Talk[list[Secret]]:
    """Return the team's secrets by name, without their values."""
    return (yield from listed("secrets", secret_of))


def remove_secret(name: str) -> Talk[None]:
    """Remove a secret."""
    check_secret_name(name)
    yield Ask(method="DELETE", path=f"secrets/{quoted(name)}")


def put_alert(
    alert_id: str, rule: Rule, *, every: Duration = EVERY, notify: Sequence[Channel] = (), hold: Duration = 0
) -> Talk[ToldAlert]:
    """Store an alert that looks whether *rule* holds, so often, and return it. One that is known is defined anew."""
    said = {name: _said(value) for name, value in msgspec.structs.asdict(rule).items()}
    body = {
        "rule": {"kind": rule.__struct_config__.tag, **said},
        "every": _seconds(every, "every"),
        "hold": _seconds(hold, "hold"),
        "notify": list(notify),
    }
    told = yield Ask(method="PUT", path=f"alerts/{quoted(alert_id)}", body=body, safe=True)
    return as_value(told, _alert)


def get_alert(alert_id: str) -> Talk[ToldAlert]:
    """Return the alert with this id."""
    return (yield from asked("GET", f"alerts/{quoted(alert_id)}", _alert))


def alerts() -> Talk[list[ToldAlert]]:
    """Return the alerts, in the order of their ids, with what the last look has found."""
    return (yield from listed("alerts", _alert))


def remove_alert(alert_id: str) -> Talk[None]:
    """Remove it. Nobody is told of it any more, not even that it has resolved."""
    yield Ask(method="DELETE", path=f"alerts/{quoted(alert_id)}")


def put_notification(rule_id: str, channel: Channel) -> Talk[ToldNotification]:
    """Have *channel* told of all jobs and schedules of the team, and return that. One whose id is known is changed."""
    told = yield Ask(method="PUT", path=f"notifications/{quoted(rule_id)}", body=channel, safe=True)
    return as_value(told, _notification)


def get_notification(rule_id: str) -> Talk[ToldNotification]:
    """Return the notification with this id."""
    return (yield from asked("GET", f"notifications/{quoted(rule_id)}", _notification))


def notifications() -> Talk[list[ToldNotification]]:
    """Return the notifications of the team, by id."""
    return (yield from listed("notifications", _notification))


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
    return as_value(told, rule_of)


def retention() -> Talk[list[RetentionRule]]:
    """Return the rules, the most precise first."""
    return (yield from listed("retention", rule_of))


def remove_retention(*, state: JobState | str | None = None, queue: str | None = None) -> Talk[None]:
    """Take back the rule that covers just that; raise NotFound if there is none."""
    yield Ask(method="DELETE", path="retention", params={"state": state, "queue": queue})


def records(*, before: int | None = None, limit: int = 50) -> Talk[list[Record]]:
    """Return entries of the audit log, the last first; pass the last one's `seq` as *before* for more."""
    return (yield from paged("audit", record_of, "before", limit, before=before))


def set_team(name: str, **quotas: Unpack[Quotas]) -> Talk[Team]:
    """Say what a team may have, and return that. What is left out stays as it is, None lifts it."""
    check_known(quotas, Quotas, "no quota")
    body = {said: _rate(value) if isinstance(value, Rate) else value for said, value in quotas.items()}
    told = yield Ask(method="PUT", path=f"teams/{quoted(name)}", body=body, safe=True)
    return as_value(told, team_of)


def get_team(name: str) -> Talk[Team]:
    """Return what a team may have."""
    return (yield from asked("GET", f"teams/{quoted(name)}", team_of))


def teams() -> Talk[list[Team]]:
    """Return the teams of which something was said, by name."""
    return (yield from listed("teams", team_of))


def remove_team(name: str) -> Talk[None]:
    """Forget what was said of a team. What is the team's stays."""
    yield Ask(method="DELETE", path=f"teams/{quoted(name)}")


def set_queue(name: str, *, ageing: Duration | None) -> Talk[None]:
    """Let each point of priority be worth so much waiting in a queue, so that no job starves; None for strict ones."""
    yield Ask(method="PUT", path=f"queues/{quoted(name)}", body={"ageing": _seconds(ageing, "ageing")}, safe=True)


def give_queue(name: str, team: str | None) -> Talk[None]:
    """Make a queue a team's own: other teams enqueue nothing more there. None makes it everybody's."""
    yield Ask(method="PUT", path=f"queues/{quoted(name)}/owner", body={"team": team}, safe=True)


def paused_tasks() -> Talk[list[Pause]]:
    """Return the tasks that are paused, by name."""
    return (yield from listed("paused-tasks", lambda told: pause_of(told, Pausable.TASK)))


def pause_task(task: str, *, reason: str | None = None) -> Talk[Pause]:
    """Let no worker claim jobs of a task until `resume`; what runs goes on."""
    body = None if reason is None else {"reason": reason}
    return (yield from asked("POST", f"tasks/{quoted(task)}/pause", lambda told: pause_of(told, Pausable.TASK), body))


def resume_task(task: str) -> Talk[bool]:
    """Let workers claim the jobs of a task again; return whether it was paused."""
    told = yield Ask(method="POST", path=f"tasks/{quoted(task)}/resume")
    return bool(part(told, "resumed"))


def limits() -> Talk[list[LimitStatus]]:
    """Return the limits that jobs have come to lately, by key."""
    return (yield from listed("limits", limit_of))


def release_limit(key: str) -> Talk[int]:
    """Make all jobs ready that wait for the limit with this key; return how many did."""
    told = yield Ask(method="POST", path=f"limits/{quoted(key)}/release")
    return int(part(told, "released"))


def breakers() -> Talk[list[BreakerStatus]]:
    """Return the breakers under which something has failed lately, or that a person tripped, by key."""
    return (yield from listed("breakers", breaker_of))


def trip_breaker(key: str, *, lasting: Duration = TRIP, reason: str | None = None) -> Talk[BreakerStatus]:
    """Open the breaker: no job starts under it for so long."""
    body = {"lasting": _seconds(lasting, "lasting"), "reason": reason}
    return (yield from asked("POST", f"breakers/{quoted(key)}/trip", breaker_of, body))


def get_breaker(key: str) -> Talk[BreakerStatus]:
    """Return how the breaker stands; one that nothing is known of is closed."""
    return (yield from asked("GET", f"breakers/{quoted(key)}", breaker_of))


def reset_breaker(key: str, *, all: bool = False) -> Talk[bool]:  # noqa: A002 - as in the app
    """Close the breaker; return whether it was open or half-open.

    Jobs that wait for it go on one after the other, or with *all* all at once.
    """
    told = yield Ask(method="POST", path=f"breakers/{quoted(key)}/reset", body={"all": all})
    return bool(part(told, "reset"))


def workers() -> Talk[list[Session]]:
    """Return the workers that were not closed or reaped, oldest first."""
    return (yield from listed("workers", worker_of))


def of_fleet() -> Talk[bool]:
    """Return whether what holds for the whole fleet, such as its workers, is shown to who has this token."""
    told = yield Ask(method="GET", path="workers")
    return bool(part(told, "of_fleet"))


def history(over: str = "1h", *, queue: str | None = None) -> Talk[History]:
    """Return what became of jobs and what waited over the last `1h`, `24h` or `7d`, in equal spans of it."""
    told = yield Ask(method="GET", path="history", params={"over": over, "queue": queue})
    return as_value(told, history_of)


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
    return (yield from listed("logs", found_of, **match, since=begun, limit=limit))


def _alert(told: object) -> ToldAlert:
    return as_told(told, ToldAlert)


def _notification(told: object) -> ToldNotification:
    return as_told(told, ToldNotification)


def _seconds(length: Duration | None, name: str) -> float | None:
    return None if length is None else duration(length, name).total_seconds()


def _said(value: object) -> object:
    return spelled(value) if isinstance(value, timedelta) else value


def _rate(rate: Rate) -> str:
    return f"{rate.count}/{round(rate.per / _MILLISECOND)}ms"
