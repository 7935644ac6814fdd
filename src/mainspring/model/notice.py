"""Notices: what there is to tell of jobs and schedules, to whom, and the jobs that do the telling.

Pure, as the lifecycle is: whoever settles jobs or fires schedules asks here what there is to tell, and stores the
answer in the same transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from hashlib import blake2b

import msgspec

from mainspring.model.alert import AlertEvent, described
from mainspring.model.channel import Channel, Event, Webhook, decode_channels
from mainspring.model.ids import uuid7
from mainspring.model.job import NOTIFY_QUEUE, TELLERS, Job, JobState, NewJob
from mainspring.model.lifecycle import Settlement
from mainspring.model.payload import encode_call
from mainspring.model.schedule import Schedule
from mainspring.model.team import DEFAULT_TEAM, local_name, stored_team
from mainspring.model.text import cut
from mainspring.model.tick import Tick, Verdict

WEBHOOK, EMAIL = "mainspring.webhook", "mainspring.email"

_LONGEST_MESSAGE = 2_000
_MILLISECOND = 1000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_VERDICTS = {Verdict.LATE: Event.LATE, Verdict.MISSED: Event.MISSED, Verdict.COALESCED: Event.MISSED}

Facts = Mapping[str, object]


class Rule(msgspec.Struct, frozen=True):
    """That a team wants a channel to be told of all its jobs and schedules."""

    team: str
    id: str
    channel: Channel
    created_at: datetime
    changed_at: datetime


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """Something that has happened, of which some may want to be told.

    *subject* is what may be in trouble and recover: a schedule, or a job that has none. *mark* tells the notice from
    all others.
    """

    event: str
    mark: str
    subject: str
    facts: Callable[[], Facts]
    team: str | None = None  # as it is stored
    notify: str | None = None  # whom the job or the schedule itself names
    private: bool = False  # nobody but those is told
    trouble: bool = False  # a success after it is a recovery
    trace: str | None = None

    def audience(self, team: Iterable[Channel]) -> list[Channel]:
        """Return whom it may concern, whatever its event; those that the job itself names come first."""
        return [*decode_channels(self.notify), *(() if self.private else team)]


def of_settlement(settlement: Settlement) -> Notice | None:
    """Return what there is to tell of a job that has moved; None if that is nobody's business.

    A person who cancels a job knows. The jobs that tell people are told of by nobody, or they would never end.
    """
    job, event = settlement.job, _event(settlement)
    if job is None or event is None or job.task in TELLERS:
        return None
    return Notice(
        event=event,
        mark=f"{job.id}:{settlement.fence}:{settlement.state}",
        subject=f"job:{job.id}" if job.schedule is None else subject_of(job.schedule),
        facts=partial(_facts_of, job, settlement),
        team=job.team,
        notify=job.notify,
        private=job.workflow is not None,
        trouble=event in (Event.FAILURE, Event.RETRY),
        trace=job.trace,
    )


def subject_of(schedule_id: str) -> str:
    """Return what a schedule is called among all that may be in trouble."""
    return f"schedule:{schedule_id}"


def of_ticks(schedule: Schedule, ticks: Sequence[Tick]) -> list[Notice]:
    """Return what there is to tell of *ticks* of a schedule that were decided together: one notice for each event."""
    found: dict[Event, list[Tick]] = {}
    for tick in ticks:
        if tick.verdict in _VERDICTS:
            found.setdefault(_VERDICTS[tick.verdict], []).append(tick)
    return [
        _of_schedule(schedule, event, some[0].at, partial(_facts_of_ticks, schedule, some))
        for event, some in found.items()
    ]


def of_overdue(schedule: Schedule, expected_by: datetime) -> Notice:
    """Return what there is to tell of a schedule that should have had a success by then."""
    facts = partial(_facts_of_overdue, schedule, expected_by)
    return msgspec.structs.replace(_of_schedule(schedule, Event.LATE, expected_by, facts), trouble=True)


def of_alert(event: AlertEvent, team: str | None) -> Notice:
    """Return what there is to tell of an alert of *team* that has begun to fire, or has resolved."""
    name = local_name(event.alert)
    facts = {
        "headline": f"alert {name} is {event.event}: {event.message}",
        "alert": name,
        "rule": described(event.rule),
        "value": event.value,
        "reason": event.message,
        "since": written(event.since),
    }
    return Notice(
        event=event.event,
        mark=f"alert:{event.alert}:{event.since.isoformat()}:{event.event}",
        subject=f"alert:{event.alert}",
        facts=lambda: facts,
        team=team,
    )


def heard_by(notice: Notice, audience: Iterable[Channel]) -> list[Channel]:
    """Return those of *audience* that are told of *notice* for what it is."""
    return each_once(one for one in audience if notice.event in one.on)


def each_once(channels: Iterable[Channel]) -> list[Channel]:
    """Return *channels* without those that lead to the same place as an earlier one."""
    found: dict[str, Channel] = {}
    for one in channels:
        found.setdefault(one.target, one)
    return list(found.values())


def keep_in_mind(notice: Notice, audience: Iterable[Channel]) -> list[tuple[str, str]]:
    """Return, as subjects and targets, for whom a later success is a recovery.

    That is for those who want to know of one, and were told of the trouble.
    """
    if not notice.trouble:
        return []
    return [(notice.subject, one.target) for one in audience if Event.RECOVERED in one.on and notice.event in one.on]


def may_have_recovered(notice: Notice, audience: Iterable[Channel]) -> list[tuple[str, str]]:
    """Return, as subjects and targets, for whom *notice* tells of a recovery, if they were told of trouble before."""
    if notice.event != Event.SUCCESS:
        return []
    return [(notice.subject, one.target) for one in audience if Event.RECOVERED in one.on]


def recovery(notice: Notice) -> Notice:
    """Return the *notice* of a success as that of a recovery, which says as much and more."""
    return msgspec.structs.replace(notice, event=Event.RECOVERED)


def new_job(notice: Notice, channel: Channel, now: datetime) -> NewJob:
    """Return the job that tells *channel* of *notice*.

    Its id is the same however often it is made at that moment. Where to exactly, and with which secret, stands in no
    payload, which everybody may read who may see the job: `notify` is the one place for that.
    """
    task = WEBHOOK if isinstance(channel, Webhook) else EMAIL
    team = notice.team or DEFAULT_TEAM
    document = {"event": notice.event, "team": team, "at": written(now), **notice.facts()}
    digest = blake2b(f"{notice.mark}:{channel.target}".encode(), digest_size=16).digest()
    made = NewJob(
        id=uuid7(int((now - _EPOCH).total_seconds() * _MILLISECOND), int.from_bytes(digest) >> 54),
        task=task,
        payload=encode_call((), {"to": channel.place, "team": team, "notice": document}),
        queue=NOTIFY_QUEUE,
        notify=msgspec.json.encode([channel]).decode(),
        trace=notice.trace,
    )
    return made.given_to(notice.team)  # and in its line: what one team has to tell does not hold up the others


def written(instant: datetime | None) -> str | None:
    """Return *instant* as text, in UTC."""
    return None if instant is None else instant.astimezone(UTC).isoformat(timespec="milliseconds")


def _event(settlement: Settlement) -> Event | None:
    match settlement.state:
        case JobState.SUCCEEDED:
            return Event.SUCCESS
        case JobState.FAILED | JobState.EXPIRED:
            return Event.FAILURE
        case JobState.RETRYING | JobState.READY if settlement.failure is not None:
            return Event.RETRY
    return None


def _facts_of(job: Job, settlement: Settlement) -> Facts:
    failure, delay = settlement.failure, settlement.delay
    return {
        "job_id": str(job.id),
        "task": job.task,
        "queue": job.queue,
        "state": settlement.state,
        "attempt": job.attempt,
        "schedule": local_name(job.schedule),
        "tick": written(job.tick),
        "workflow": None if job.workflow is None else str(job.workflow),
        "created_at": written(job.created_at),
        "started_at": written(job.started_at),
        "retry_in_seconds": None if delay is None or settlement.state.final else delay.total_seconds(),
        "reason": settlement.reason,
        "error": None if failure is None else {"type": failure.type, "message": cut(failure.message, _LONGEST_MESSAGE)},
    }


def _of_schedule(schedule: Schedule, event: Event, at: datetime, facts: Callable[[], Facts]) -> Notice:
    return Notice(
        event=event,
        mark=f"{subject_of(schedule.id)}:{at.isoformat()}:{event}",
        subject=subject_of(schedule.id),
        facts=facts,
        team=stored_team(schedule.definition.team),
        notify=schedule.definition.notify,
    )


def _facts_of_ticks(schedule: Schedule, ticks: Sequence[Tick]) -> Facts:
    counts = [tick.count for tick in ticks]
    return {
        "task": schedule.definition.task,
        "queue": schedule.definition.queue,
        "schedule": local_name(schedule.id),
        "tick": written(ticks[0].at),
        "until": written(ticks[-1].until or ticks[-1].at),
        "ticks": None if None in counts else sum(count or 0 for count in counts),
        "reason": ticks[-1].reason,
    }


def _facts_of_overdue(schedule: Schedule, expected_by: datetime) -> Facts:
    within = schedule.definition.expect_success_within
    return {
        "task": schedule.definition.task,
        "queue": schedule.definition.queue,
        "schedule": local_name(schedule.id),
        "expected_by": written(expected_by),
        "reason": f"no job has succeeded within {within} of its tick",
    }
