"""What can be asked of a server, written once for both kinds of client."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Unpack
from uuid import UUID

from mainspring.clock import SystemClock, random_bits
from mainspring.dead import Chosen
from mainspring.errors import InvalidValue, JobFailed, ResultNotReady, check_known
from mainspring.job_handle import id_of
from mainspring.model.channel import Channel
from mainspring.model.duration import Duration, duration, spelled
from mainspring.model.job import JobState
from mainspring.model.payload import encode_call, encode_result
from mainspring.model.text import shortened
from mainspring.model.trigger import After, At, Every, Trigger
from mainspring.remote.answers import as_kind, asked, items, listed, part, quoted
from mainspring.remote.documents import (
    Attempt,
    Change,
    Group,
    Job,
    Line,
    Made,
    Preview,
    Queue,
    Reason,
    Schedule,
    Skipped,
    Step,
    Tick,
    Workflow,
)
from mainspring.remote.talk import Ask, Event, Talk
from mainspring.schedules import ScheduleOptions
from mainspring.task_handle import Parent, Wishes

LARGEST_BULK = 1_000
_LONGEST_WAIT = 30.0
_LENGTHS = ("run_after", "expires", "idempotency_ttl", "grace", "jitter", "expect_success_within")


def enqueue(task: str, args: Sequence[object], kwargs: Mapping[str, object] | None, wishes: Wishes) -> Talk[Job]:
    wanted = _wanted(task, args, kwargs, wishes)
    told = yield Ask(method="POST", path="jobs", body=wanted, safe=True)
    return as_kind(told, Job)


def enqueue_many(
    task: str, calls: Iterable[tuple[Sequence[Any], Mapping[str, Any]]], wishes: Wishes
) -> Talk[list[UUID]]:
    jobs = [_wanted(task, args, kwargs, wishes) for args, kwargs in calls]
    if len(jobs) > LARGEST_BULK:
        raise InvalidValue(f"expected at most {LARGEST_BULK:,} jobs, which are stored all or none, got {len(jobs):,}")
    if not jobs:
        return []
    told = yield Ask(method="POST", path="jobs/bulk", body={"jobs": jobs}, safe=True)
    return [item.id for item in items(told, Made)]


def job(job_id: UUID | str, wait: float = 0) -> Talk[Job]:
    params = {"wait": wait} if wait else {}
    told = yield Ask(method="GET", path=f"jobs/{id_of(job_id)}", params=params, patience=wait)
    return as_kind(told, Job)


def jobs(path: str, params: Mapping[str, object]) -> Talk[list[Job]]:
    told = yield Ask(method="GET", path=path, params=dict(params))
    return items(told, Job)


def enqueue_workflow(
    name: str,
    nodes: Sequence[Mapping[str, Any]],
    *,
    output: str | None = None,
    key: str | None = None,
    notify: Sequence[Channel] = (),
) -> Talk[Workflow]:
    for node in nodes:
        encode_call(node.get("args", ()), node.get("kwargs", {}))
    body = {"name": name, "nodes": list(nodes), "output": output, "key": key, "notify": list(notify)}
    return (yield from asked("POST", "workflows", Workflow, body))


def workflow(job_id: UUID | str) -> Talk[Workflow]:
    return (yield from asked("GET", f"workflows/{id_of(job_id)}", Workflow))


def workflows(before: UUID | str | None = None, limit: int = 50) -> Talk[list[Workflow]]:
    return (yield from listed("workflows", Workflow, before=None if before is None else id_of(before), limit=limit))


def members(job_id: UUID) -> Talk[list[Job]]:
    found: list[Job] = []
    after: str | None = None
    while True:
        told = yield Ask(method="GET", path=f"workflows/{job_id}/jobs", params={"after": after, "limit": 1_000})
        found += items(told, Job)
        after = part(told, "next")
        if after is None:
            return found


def progress(job_id: UUID) -> Talk[dict[JobState, int]]:
    """Return how many of its jobs are in which state."""
    found = yield from workflow(job_id)
    return {JobState(state): count for state, count in found.counts.items()}


def change_of(event: Event) -> Change | Skipped:
    """Return what an event of the stream of all jobs tells."""
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
    return (yield from listed(f"jobs/{job_id}/attempts", Attempt))


def logs(job_id: UUID) -> Talk[list[Line]]:
    """Return what its attempts have logged, oldest first."""
    return (yield from listed(f"jobs/{job_id}/logs", Line, limit=10_000))


def steps(job_id: UUID) -> Talk[list[Step]]:
    """Return the steps that it has done, and the sleep or signal that it waits for, in the order of time."""
    return (yield from listed(f"jobs/{job_id}/steps", Step))


def explain(job_id: UUID) -> Talk[list[Reason]]:
    """Return every reason why it does not run, the first to lift first."""
    return (yield from listed(f"jobs/{job_id}/explain", Reason))


def put_schedule(schedule_id: str, task: str, trigger: Trigger, **options: Unpack[ScheduleOptions]) -> Talk[Schedule]:
    """Store a schedule that enqueues *task* when *trigger* says so; one that is known is defined anew."""
    check_known(options, ScheduleOptions)
    encode_call(options.get("args", ()), options.get("kwargs", {}))
    body = {"task": task, "trigger": _trigger(trigger), **_plain(options)}
    # Said twice it is defined as it was said once.
    told = yield Ask(method="PUT", path=f"schedules/{quoted(schedule_id)}", body=body, safe=True)
    return as_kind(told, Schedule)


def get_schedule(schedule_id: str) -> Talk[Schedule]:
    """Return the schedule with this id."""
    told = yield Ask(method="GET", path=f"schedules/{quoted(schedule_id)}")
    return as_kind(told, Schedule)


def schedules() -> Talk[list[Schedule]]:
    """Return all schedules, in the order of their ids."""
    found: list[Schedule] = []
    after: str | None = None
    while True:
        told = yield Ask(method="GET", path="schedules", params={"after": after, "limit": 1_000})
        found += items(told, Schedule)
        after = part(told, "next")
        if after is None:
            return found


def pause_schedule(schedule_id: str, *, reason: str | None = None) -> Talk[Schedule]:
    """Hold it until `resume`. What it has enqueued goes on."""
    body = None if reason is None else {"reason": reason}
    told = yield Ask(method="POST", path=f"schedules/{quoted(schedule_id)}/pause", body=body)
    return as_kind(told, Schedule)


def resume_schedule(schedule_id: str) -> Talk[Schedule]:
    """Let it go on with the next tick; those that came in the meantime are recorded as skipped."""
    told = yield Ask(method="POST", path=f"schedules/{quoted(schedule_id)}/resume")
    return as_kind(told, Schedule)


def remove_schedule(schedule_id: str) -> Talk[None]:
    """Remove it. Its jobs and its history stay."""
    yield Ask(method="DELETE", path=f"schedules/{quoted(schedule_id)}")


def fire_schedule(schedule_id: str, deed: str, body: object = None) -> Talk[list[UUID]]:
    told = yield Ask(method="POST", path=f"schedules/{quoted(schedule_id)}/{deed}", body=body)
    return as_kind(part(told, "jobs"), list[UUID])


def preview(schedule_id: str, n: int = 10, after: datetime | None = None) -> Talk[list[Preview]]:
    """Return its next *n* ticks, with a remark where the clocks change."""
    told_after = None if after is None else after.isoformat()
    return (yield from listed(f"schedules/{quoted(schedule_id)}/preview", Preview, limit=n, after=told_after))


def history(schedule_id: str, *, before: datetime | None = None, limit: int = 50) -> Talk[list[Tick]]:
    """Return what became of its ticks, the latest first; pass the last one's `at` as *before* for more."""
    told_before = None if before is None else before.isoformat()
    return (yield from listed(f"schedules/{quoted(schedule_id)}/history", Tick, before=told_before, limit=limit))


def queues() -> Talk[list[Queue]]:
    """Return the queues that have unfinished jobs, a worker, ageing on or a pause, by name."""
    return (yield from listed("queues", Queue))


def pause_queue(name: str, *, reason: str | None = None) -> Talk[None]:
    """Let no worker claim from the queue until `resume`; what runs goes on."""
    yield Ask(method="POST", path=f"queues/{quoted(name)}/pause", body=None if reason is None else {"reason": reason})


def resume_queue(name: str) -> Talk[bool]:
    """Let workers claim from it again; return whether it was paused."""
    told = yield Ask(method="POST", path=f"queues/{quoted(name)}/resume")
    return bool(part(told, "resumed"))


def groups(queue: str | None = None, task: str | None = None, limit: int = 50) -> Talk[list[Group]]:
    """Return dead letters by their cause, the group that was seen last first."""
    return (yield from listed("dead/groups", Group, queue=queue, task=task, limit=limit))


def replay_dead(*, reason: str | None = None, **chosen: Unpack[Chosen]) -> Talk[int]:
    """Run dead letters again, all at once, and return how many; the app's own tries a few first."""
    told = yield Ask(method="POST", path="dead/replay", body=_chosen(chosen, reason))
    return int(part(told, "done"))


def discard(*, reason: str | None = None, **chosen: Unpack[Chosen]) -> Talk[int]:
    """Give dead letters up, and return how many."""
    told = yield Ask(method="POST", path="dead/discard", body=_chosen(chosen, reason))
    return int(part(told, "done"))


def _chosen(chosen: Chosen, reason: str | None) -> dict[str, object]:
    check_known(chosen, Chosen)
    known: dict[str, object] = {**chosen, "reason": reason}
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


def _result_of(found: Job) -> Any:
    if found.state is JobState.SUCCEEDED:
        return found.result
    failed = found.error is not None and (found.state is JobState.FAILED or found.reason is None)
    raise JobFailed(found.id, found.state, found.error.message if failed and found.error else found.reason)
