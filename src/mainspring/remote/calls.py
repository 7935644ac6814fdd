"""What can be asked of a server, written once for both kinds of client."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Unpack
from uuid import UUID

from mainspring.clock import SystemClock, random_bits
from mainspring.dead import Chosen
from mainspring.documents.dead import group_of, meant_of
from mainspring.documents.jobs import attempt_of, line_of, reason_of, step_of
from mainspring.documents.queues import pause_of, queue_of
from mainspring.documents.schedules import preview_of, schedule_of, tick_of
from mainspring.documents.told import ToldJob, ToldWorkflow, as_told
from mainspring.documents.workflows import picture_of
from mainspring.errors import InvalidValue, JobFailed, ResultNotReady, check_known
from mainspring.explain import Reason
from mainspring.job_handle import id_of
from mainspring.model.attempt import Attempt
from mainspring.model.channel import Channel
from mainspring.model.dead import Group, Meant
from mainspring.model.duration import Duration, duration, spelled
from mainspring.model.job import JobState
from mainspring.model.journal import LogEntry
from mainspring.model.payload import encode_call, encode_result
from mainspring.model.picture import Picture
from mainspring.model.preview import Preview
from mainspring.model.queue import Pausable, Pause, Queue
from mainspring.model.schedule import Schedule
from mainspring.model.step import Step
from mainspring.model.text import shortened
from mainspring.model.tick import TickRecord
from mainspring.model.trigger import After, At, Every, Trigger
from mainspring.remote.answers import LARGEST_PAGE, as_kind, as_value, asked, items, listed, paged, part, quoted
from mainspring.remote.changes import Change, Skipped
from mainspring.remote.talk import Ask, Event, Talk
from mainspring.schedules import ScheduleOptions
from mainspring.task_handle import Parent, Wishes

LARGEST_BULK = 1_000
_LONGEST_WAIT = 30.0
_PAGE = 50
_LARGEST_OF_WORKFLOWS = 100
_TIMES = ("since", "until", "finished_since", "finished_until")
_LENGTHS = ("run_after", "expires", "idempotency_ttl", "grace", "jitter", "expect_success_within")


def enqueue(task: str, args: Sequence[object], kwargs: Mapping[str, object] | None, wishes: Wishes) -> Talk[ToldJob]:
    wanted = _wanted(task, args, kwargs, wishes)
    told = yield Ask(method="POST", path="jobs", body=wanted, safe=True)
    return job_of(told)


def enqueue_many(
    task: str, calls: Iterable[tuple[Sequence[Any], Mapping[str, Any]]], wishes: Wishes
) -> Talk[list[UUID]]:
    jobs = [_wanted(task, args, kwargs, wishes) for args, kwargs in calls]
    if len(jobs) > LARGEST_BULK:
        raise InvalidValue(f"expected at most {LARGEST_BULK:,} jobs, which are stored all or none, got {len(jobs):,}")
    if not jobs:
        return []
    told = yield Ask(method="POST", path="jobs/bulk", body={"jobs": jobs}, safe=True)
    return items(told, lambda made: UUID(made["id"]))


def job(job_id: UUID | str, wait: float = 0) -> Talk[ToldJob]:
    params = {"wait": wait} if wait else {}
    told = yield Ask(method="GET", path=f"jobs/{id_of(job_id)}", params=params, patience=wait)
    return job_of(told)


def jobs(path: str, match: Mapping[str, Any]) -> Talk[list[ToldJob]]:
    params = {"limit": _PAGE, **match}
    return (yield from paged(path, job_of, "before", **params))


def find_jobs(match: Mapping[str, Any]) -> Talk[list[ToldJob]]:
    """Return jobs that fit, as many as are wanted: a server looks at no more at once than it can in no time.

    How long ago something is to be counts from now, by the clock of this machine: by the server's it would be later
    with each page, and the last ones would lack what had fitted before.
    """
    now = SystemClock().now()
    times = {name: _instant(match[name], name, now) for name in _TIMES if match.get(name) is not None}
    return (yield from jobs("jobs", {**match, **times}))


def _instant(value: Duration | datetime, name: str, now: datetime) -> str:
    return (value if isinstance(value, datetime) else now - duration(value, name)).isoformat()


def enqueue_workflow(
    name: str,
    nodes: Sequence[Mapping[str, Any]],
    *,
    output: str | None = None,
    key: str | None = None,
    notify: Sequence[Channel] = (),
) -> Talk[ToldWorkflow]:
    for node in nodes:
        encode_call(node.get("args", ()), node.get("kwargs", {}))
    body = {"name": name, "nodes": list(nodes), "output": output, "key": key, "notify": list(notify)}
    return (yield from asked("POST", "workflows", _workflow_of, body))


def workflow(job_id: UUID | str) -> Talk[ToldWorkflow]:
    return (yield from asked("GET", f"workflows/{id_of(job_id)}", _workflow_of))


def workflows(before: UUID | str | None = None, limit: int = 50) -> Talk[list[ToldWorkflow]]:
    start = None if before is None else id_of(before)
    return (yield from paged("workflows", _workflow_of, "before", limit, _LARGEST_OF_WORKFLOWS, before=start))


def members(job_id: UUID) -> Talk[list[ToldJob]]:
    return (yield from paged(f"workflows/{job_id}/jobs", job_of, "after"))


def picture(job_id: UUID) -> Talk[Picture]:
    """Return a picture of its jobs as they are now: print it, or have it as a flowchart by its `mermaid`."""
    return (yield from asked("GET", f"workflows/{job_id}/picture", picture_of))


def progress(job_id: UUID) -> Talk[dict[JobState, int]]:
    """Return how many of its jobs are in which state."""
    found = yield from workflow(job_id)
    return found.counts


def change_of(event: Event) -> Change | Skipped | None:
    """Return what an event of the stream of all jobs tells; None of one that is about the stream itself."""
    if event.kind == "listening":
        return None
    return Skipped() if event.kind == "skipped" else as_kind(event.told, Change)


def result(job_id: UUID, timeout: Duration | None = None) -> Talk[Any]:
    """Wait until the job has finished, and return what its handler returned, as plain as JSON has it.

    Raises JobFailed when it ended in another way, and ResultNotReady, a TimeoutError, after *timeout*.
    """
    clock = SystemClock()
    seconds = None if timeout is None else duration(timeout, "timeout").total_seconds()
    give_up = None if seconds is None else clock.steady() + seconds
    while True:
        left = _LONGEST_WAIT if give_up is None else max(0.0, give_up - clock.steady())
        found = yield from job(job_id, min(left, _LONGEST_WAIT))
        if found.state.final:
            return _result_of(found)
        if left <= 0:
            raise ResultNotReady(job_id, found.state)


def cancel(job_id: UUID, reason: str | None = None) -> Talk[JobState]:
    """Cancel it: at once when it waits, by asking its worker when it runs. Returns the state it is in then."""
    return (yield from _ruled(job_id, "cancel", reason))


def pause(job_id: UUID, reason: str | None = None) -> Talk[JobState]:
    """Hold it until `resume`: at once when it waits, by asking its worker when it runs."""
    return (yield from _ruled(job_id, "pause", reason))


def resume(job_id: UUID) -> Talk[JobState]:
    """Let it go on at its due time."""
    return (yield from _ruled(job_id, "resume", None))


def replay(job_id: UUID, reason: str | None = None) -> Talk[JobState]:
    """Run it again if it failed, expired or was cancelled."""
    return (yield from _ruled(job_id, "replay", reason))


def signal(job_id: UUID, name: str, value: object = None) -> Talk[None]:
    """Send it a signal, which it takes now or when it comes to that."""
    encode_result(value, "the value of the signal")
    yield Ask(method="POST", path=f"jobs/{job_id}/signal", body={"name": name, "value": value})


def attempts(job_id: UUID) -> Talk[list[Attempt]]:
    """Return its attempts, oldest first."""
    return (yield from listed(f"jobs/{job_id}/attempts", lambda told: attempt_of(told, job_id)))


def logs(job_id: UUID, *, contains: str | None = None, level: str | None = None) -> Talk[list[LogEntry]]:
    """Return what its attempts have logged, oldest first: all, or what *contains* a text or is of a *level* on."""
    return (yield from paged(f"jobs/{job_id}/logs", line_of, "after", after="0.0", contains=contains, level=level))


def log_page(
    job_id: UUID,
    after: tuple[int, int] = (0, 0),
    limit: int = LARGEST_PAGE,
    *,
    contains: str | None = None,
    level: str | None = None,
) -> Talk[list[LogEntry]]:
    """Return up to *limit* of these lines; pass the last one's fence and number as *after* for the next."""
    path, mark = f"jobs/{job_id}/logs", f"{after[0]}.{after[1]}"
    return (yield from paged(path, line_of, "after", limit, after=mark, contains=contains, level=level))


def steps(job_id: UUID) -> Talk[list[Step]]:
    """Return the steps that it has done, and the sleep or signal that it waits for, in the order of time."""
    return (yield from listed(f"jobs/{job_id}/steps", step_of))


def explain(job_id: UUID) -> Talk[list[Reason]]:
    """Return every reason why it does not run, the first to lift first."""
    return (yield from listed(f"jobs/{job_id}/explain", reason_of))


def put_schedule(schedule_id: str, task: str, trigger: Trigger, **options: Unpack[ScheduleOptions]) -> Talk[Schedule]:
    """Store a schedule that enqueues *task* when *trigger* says so; one that is known is defined anew."""
    check_known(options, ScheduleOptions)
    encode_call(options.get("args", ()), options.get("kwargs", {}))
    body = {"task": task, "trigger": _trigger(trigger), **_plain(options)}
    # Said twice it is defined as it was said once.
    told = yield Ask(method="PUT", path=f"schedules/{quoted(schedule_id)}", body=body, safe=True)
    return as_value(told, schedule_of)


def get_schedule(schedule_id: str) -> Talk[Schedule]:
    """Return the schedule with this id."""
    told = yield Ask(method="GET", path=f"schedules/{quoted(schedule_id)}")
    return as_value(told, schedule_of)


def schedules() -> Talk[list[Schedule]]:
    """Return all schedules, in the order of their ids."""
    return (yield from paged("schedules", schedule_of, "after"))


def pause_schedule(schedule_id: str, *, reason: str | None = None) -> Talk[Schedule]:
    """Hold it until `resume`. What it has enqueued goes on."""
    body = None if reason is None else {"reason": reason}
    told = yield Ask(method="POST", path=f"schedules/{quoted(schedule_id)}/pause", body=body)
    return as_value(told, schedule_of)


def resume_schedule(schedule_id: str) -> Talk[Schedule]:
    """Let it go on with the next tick; those that came in the meantime are recorded as skipped."""
    told = yield Ask(method="POST", path=f"schedules/{quoted(schedule_id)}/resume")
    return as_value(told, schedule_of)


def remove_schedule(schedule_id: str) -> Talk[None]:
    """Remove it. Its jobs and its history stay."""
    yield Ask(method="DELETE", path=f"schedules/{quoted(schedule_id)}")


def fire_schedule(schedule_id: str, deed: str, body: object = None) -> Talk[list[UUID]]:
    told = yield Ask(method="POST", path=f"schedules/{quoted(schedule_id)}/{deed}", body=body)
    return as_kind(part(told, "jobs"), list[UUID])


def preview(schedule_id: str, n: int = 10, after: datetime | None = None) -> Talk[list[Preview]]:
    """Return its next *n* ticks, with a remark where the clocks change."""
    found: list[Preview] = []
    while len(found) < n:
        told_after = None if after is None else after.isoformat()
        params = {"limit": min(LARGEST_PAGE, n - len(found)), "after": told_after}
        page = yield from listed(f"schedules/{quoted(schedule_id)}/preview", preview_of, **params)
        if not page:
            break
        found += page
        after = page[-1].at
    return found


def history(schedule_id: str, *, before: datetime | None = None, limit: int = 50) -> Talk[list[TickRecord]]:
    """Return what became of its ticks, the latest first; pass the last one's `at` as *before* for more."""
    told_before = None if before is None else before.isoformat()
    path = f"schedules/{quoted(schedule_id)}/history"
    return (yield from paged(path, lambda told: tick_of(told, schedule_id), "before", limit, before=told_before))


def queues() -> Talk[list[Queue]]:
    """Return the queues that have unfinished jobs, a worker, ageing on or a pause, by name."""
    return (yield from listed("queues", queue_of))


def pause_queue(name: str, *, reason: str | None = None) -> Talk[Pause]:
    """Let no worker claim from the queue until `resume`; what runs goes on."""
    body = None if reason is None else {"reason": reason}
    return (yield from asked("POST", f"queues/{quoted(name)}/pause", lambda told: pause_of(told, Pausable.QUEUE), body))


def resume_queue(name: str) -> Talk[bool]:
    """Let workers claim from it again; return whether it was paused."""
    told = yield Ask(method="POST", path=f"queues/{quoted(name)}/resume")
    return bool(part(told, "resumed"))


def groups(queue: str | None = None, task: str | None = None, limit: int = 50) -> Talk[list[Group]]:
    """Return dead letters by their cause, the group that was seen last first."""
    return (yield from listed("dead/groups", group_of, queue=queue, task=task, limit=limit))


def count_dead(group: str | None = None, queue: str | None = None, task: str | None = None) -> Talk[int]:
    """Return how many dead letters there are."""
    return (yield from meant(group, queue, task)).letters


def meant(group: str | None = None, queue: str | None = None, task: str | None = None) -> Talk[Meant]:
    """Return how many dead letters there are, and the *finished_until* by which no others are meant later on."""
    told = yield Ask(method="GET", path="dead/count", params={"group": group, "queue": queue, "task": task})
    return as_value(told, meant_of)


def replay_dead(*, reason: str | None = None, **chosen: Unpack[Chosen]) -> Talk[int]:
    """Run dead letters again, all at once, and return how many; the app's own tries a few first."""
    told = yield Ask(method="POST", path="dead/replay", body=_chosen(chosen, reason))
    return int(part(told, "done"))


def discard(*, reason: str | None = None, **chosen: Unpack[Chosen]) -> Talk[int]:
    """Give dead letters up, and return how many."""
    told = yield Ask(method="POST", path="dead/discard", body=_chosen(chosen, reason))
    return int(part(told, "done"))


def job_of(told: object) -> ToldJob:
    """Return a job that was told of."""
    return as_kind(told, ToldJob)


def _workflow_of(told: object) -> ToldWorkflow:
    return as_told(told, ToldWorkflow)


def _chosen(chosen: Chosen, reason: str | None) -> dict[str, object]:
    check_known(chosen, Chosen)
    known: dict[str, object] = {**chosen, "reason": reason}
    if (died_before := chosen.get("finished_until")) is not None:
        known["finished_until"] = died_before.isoformat()
    if chosen.get("ids") is not None:
        known["ids"] = [str(id_of(one)) for one in chosen["ids"] or ()]
    return {name: value for name, value in known.items() if value is not None}


def _ruled(job_id: UUID, deed: str, reason: str | None) -> Talk[JobState]:
    body = None if reason is None else {"reason": reason}
    told = yield Ask(method="POST", path=f"jobs/{job_id}/{deed}", body=body)
    return as_kind(part(told, "state"), JobState)


def _wanted(
    task: str, args: Sequence[object], kwargs: Mapping[str, object] | None, wishes: Wishes
) -> dict[str, object]:
    """Return what the server is told of a job, with an idempotency key, so that it may be told again."""
    check_known(wishes, Wishes)
    if "conn" in wishes:
        raise InvalidValue("expected no conn, a transaction of one's own, for a job that a server stores")
    encode_call(args, kwargs or {})  # which says which argument JSON can't carry
    wanted = {"task": task, "args": list(args), "kwargs": dict(kwargs or {}), **_plain(wishes)}
    if wanted.get("idempotency_key") is None:
        wanted["idempotency_key"] = f"{random_bits(128):032x}"
    return wanted


def _plain(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return wishes or options as JSON has them."""
    plain = dict(given)
    for name in _LENGTHS:
        if plain.get(name) is not None:
            plain[name] = duration(plain[name], name).total_seconds()
    if "after" in plain:
        plain["after"] = [_parent(one) for one in plain["after"]]
    return plain


def _parent(given: Any) -> object:
    if isinstance(given, Parent):
        return {"job": _parent(given.job), "if_failed": given.if_failed}
    return str(id_of(getattr(given, "id", given)))


def _trigger(trigger: Trigger) -> dict[str, object]:
    if not isinstance(trigger, Trigger):
        raise InvalidValue(f"expected a trigger such as every('15m') or cron('0 9 * * *'), got: {shortened(trigger)}")
    if isinstance(trigger, At):
        return {"kind": "at", "when": trigger.when}
    if isinstance(trigger, After):
        return {"kind": "after", "length": spelled(trigger.length)}
    if isinstance(trigger, Every):
        return {"kind": "every", "length": spelled(trigger.length), "start": trigger.start}
    return {"kind": "cron", "expression": trigger.expression, "tz": trigger.tz}


def _result_of(found: ToldJob) -> Any:
    if found.state is JobState.SUCCEEDED:
        return found.result
    failed = found.error is not None and (found.state is JobState.FAILED or found.reason is None)
    raise JobFailed(found.id, found.state, found.error.message if failed and found.error else found.reason)
