"""Why a job does not run: whoever may be claimed has no reason, and whoever has none may be claimed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace

from mainspring.explain import explain
from mainspring.model.breaker import Breaker, Trip
from mainspring.model.failure import Failure
from mainspring.model.job import Job, JobState
from mainspring.model.lifecycle import settle
from mainspring.model.limits import Limit, want_of
from mainspring.model.links import Edge, IfFailed
from mainspring.model.outcome import Cancelled, Failed, Succeeded
from mainspring.model.queue import NewPause, Pausable
from mainspring.model.retry import Retry
from mainspring.model.session import NewSession
from mainspring.model.workflow import NewWorkflow, Plan, encode_plan
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.factories import new_id, new_job, new_jobs, opened_session, stored

STATES = {
    "ready": None,
    "scheduled": "not_due",
    "retrying": "not_due",
    "overdue": "not_promoted",
    "paused": "paused",
    "limited": "limit",
    "throttled": "rate",
}
AGAINST = ("expired", "queue_paused", "task_paused")
LIMITS = {"limited": Limit("k", concurrency=1), "throttled": Limit("k", rate="1/d", burst=1)}
DELAYS = {"scheduled": timedelta(hours=3), "overdue": timedelta(microseconds=1)}


def brought_to(store: SqlStore, state: str, **facts: timedelta) -> Job:
    """Return a new job that is in this state."""
    new = new_job(delay=DELAYS.get(state, timedelta(0)), **facts)
    store.enqueue([new])
    if state == "retrying":
        (job,) = store.claim(opened_session(store), "default", 1)
        failed = Failed(Failure(type="E", message="e"), retryable=True)
        store.settle([settle(job, failed, Retry(base="3h", cap="3h"))])
    elif state in LIMITS:
        wants = [LIMITS[state].want({})]
        (job,) = store.claim(opened_session(store), "default", 1)
        store.enqueue([new_job(task="other")])
        (other,) = store.claim(opened_session(store), "default", 1)
        assert store.admit([(replace(other, holds=("k",)), wants), (job, wants)]) == {other.id}
    elif state == "paused":
        store.pause([new.id])
    return stored(store, new.id)


WORKERS = {
    "knows it": (["default"], ["greet"]),
    "knows another": (["default"], ["other"]),
    "elsewhere": (["mail"], ["greet"]),
    "dead": (["default"], ["greet"]),
    "none": ([], []),
}


def new_session(queues: list[str], tasks: list[str], lease: timedelta = timedelta(days=1)) -> NewSession:
    return NewSession(id=new_id(), name="w", lease=lease, queues=queues, tasks=tasks)


def expected(state: str, worker: str, against: tuple[str, ...]) -> list[str]:
    """Return the codes of all that keeps a job from running, in order."""
    # A job expires some time after it was due, so what is scheduled and has expired should have been promoted.
    waits = "not_promoted" if state == "scheduled" and "expired" in against else STATES[state]
    told = [code for code in ("expired", waits, "queue_paused", "task_paused") if code in (*against, waits) and code]
    missing = {"knows it": [], "knows another": ["no_handler"]}
    return told + missing.get(worker, ["no_worker"])


@pytest.mark.parametrize("against", [(), *((one,) for one in AGAINST), AGAINST], ids="+".join)
@pytest.mark.parametrize("worker", WORKERS)
@pytest.mark.parametrize("state", STATES)
def test_a_job_may_be_claimed_exactly_if_nothing_is_said_against_it(
    store: SqlStore, clock: SettableClock, state: str, worker: str, against: tuple[str, ...]
) -> None:
    job = brought_to(store, state, **({"expires": timedelta(seconds=1)} if "expired" in against else {}))
    clock.advance("4h" if state == "scheduled" and "expired" in against else "2s")
    for kind, name in ((Pausable.QUEUE, "default"), (Pausable.TASK, "greet")):
        if f"{kind}_paused" in against:
            store.pause_claims(NewPause(kind=kind, name=name, by="me"))
    for one in store.sessions():
        store.close_session(one.id)
    queues, tasks = WORKERS[worker]
    session = new_session(queues, tasks, timedelta(seconds=1) if worker == "dead" else timedelta(days=1))
    if worker != "none":
        store.open_session(session)
    clock.advance("2s")

    reasons = explain(store, stored(store, job.id), store.now())
    claimed = {one.id for queue in queues for one in store.claim(session.id, queue, 100, tasks)}

    assert (job.id in claimed) == (reasons == [])
    assert [reason.code for reason in reasons] == expected(state, worker, against)
    assert all(reason.lift for reason in reasons)


AHEAD = {
    "a job": ({}, True),
    "a more urgent one": ({"priority": 20}, True),
    "one of another task that is known": ({"task": "other"}, True),
    "one of a task that nobody knows": ({"task": "unknown"}, False),
    "one of a task that is paused": ({"task": "paused"}, False),
    "one that has expired": ({"expires": timedelta(seconds=1)}, False),
    "one that is not due": ({"delay": timedelta(hours=1), "priority": 20}, False),
    "one that is less urgent": ({"priority": 1}, False),
    "one of another queue": ({"queue": "mail"}, False),
}


@pytest.mark.parametrize(("facts", "counts"), AHEAD.values(), ids=AHEAD)
def test_a_job_is_behind_exactly_if_another_would_be_claimed_before_it(
    store: SqlStore, clock: SettableClock, facts: dict[str, Any], counts: bool
) -> None:
    store.pause_claims(NewPause(kind=Pausable.TASK, name="paused", by="me"))
    tasks = ["greet", "other", "paused"]
    session = new_session(["default"], tasks)
    store.open_session(session)
    store.open_session(new_session(["mail"], ["unknown"]))
    job = new_job()
    store.enqueue([new_job(**facts), job])
    clock.advance("2s")

    codes = [reason.code for reason in explain(store, stored(store, job.id), store.now())]
    (first,) = store.claim(session.id, "default", 1, tasks)

    assert codes == (["behind"] if counts else [])
    assert (first.id == job.id) == (not counts)


def test_what_is_ahead_is_counted_where_nothing_else_is_in_the_way(store: SqlStore) -> None:
    store.open_session(new_session(["default"], ["greet"]))
    first, urgent, last = new_job(), new_job(priority=20), new_job(priority=1)
    store.enqueue([first, urgent, last, new_job(queue="mail")])

    told = [
        [(reason.sentence, reason.estimate) for reason in explain(store, stored(store, job.id), store.now())]
        for job in (urgent, first, last)
    ]

    assert told == [
        [],
        [("1 job is ahead of it in queue 'default'", None)],
        [("2 jobs are ahead of it in queue 'default'", None)],
    ]
    assert store.jobs_ahead(last.id, 1) == 1
    assert store.jobs_ahead(new_id(), 10) == 0


def finish(store: SqlStore, clock: SettableClock, count: int, each: str, queue: str = "default") -> None:
    """Have so many jobs finish, one after the other."""
    session = opened_session(store, lease=timedelta(days=1))
    store.enqueue(new_jobs(count, queue=queue))
    for job in store.claim(session, queue, count):
        clock.advance(each)
        store.settle([settle(job, Succeeded("1"))])


def test_how_long_a_queue_takes_is_told_by_its_pace(store: SqlStore, clock: SettableClock) -> None:
    store.open_session(new_session(["default"], ["greet"]))
    finish(store, clock, 50, each="2s")
    finish(store, clock, 10, each="100ms", queue="mail")
    jobs = new_jobs(31)
    store.enqueue(jobs)

    (reason,) = explain(store, stored(store, jobs[-1].id), store.now())

    assert reason.estimate is not None
    assert timedelta(seconds=58) <= reason.estimate <= timedelta(seconds=62)


def test_the_pace_of_a_queue_is_that_of_the_last_jobs_that_workers_finished_lately(
    store: SqlStore, clock: SettableClock
) -> None:
    finish(store, clock, 4, each="1s")
    cancelled = new_jobs(10)
    store.enqueue(cancelled)
    store.cancel([job.id for job in cancelled])
    assert store.pace("default") is None  # four are too few to tell, and no worker finished the others
    assert store.pace("mail") is None

    finish(store, clock, 20, each="10s")
    slow = store.pace("default")
    finish(store, clock, 120, each="100ms")
    fast = store.pace("default")
    clock.advance("20s")
    resting = store.pace("default")
    clock.advance("5m")

    assert slow is not None
    assert timedelta(seconds=8) < slow <= timedelta(seconds=10)
    assert fast is not None
    assert timedelta(milliseconds=90) < fast <= timedelta(milliseconds=100)
    assert resting is not None
    assert resting > 2 * fast
    assert store.pace("default") is None


def test_how_long_a_rate_takes_is_told_by_its_tokens_and_those_that_wait_before(
    store: SqlStore, clock: SettableClock
) -> None:
    store.open_session(new_session(["default"], ["greet"]))
    wants = [Limit("smtp", rate="60/m", burst=2).want({})]
    jobs = new_jobs(6)
    store.enqueue(jobs)
    claimed = store.claim(opened_session(store), "default", 6)
    assert len(store.admit([(job, wants) for job in claimed])) == 2

    told = [explain(store, stored(store, job.id), store.now()) for job in jobs[2:]]

    assert [reason.estimate for (reason,) in told] == [timedelta(seconds=seconds) for seconds in (1, 2, 3, 4)]
    assert told[0][0].sentence == "limit 'smtp' lets one start every 1 s"
    assert told[-1][0].sentence == "limit 'smtp' lets one start every 1 s, and 3 jobs are before it"
    for (reason,), job in zip(told, jobs[2:], strict=True):
        clock.advance("1s")
        store.release()
        assert (reason.code, stored(store, job.id).state) == ("rate", JobState.READY)
    assert store.waiting_ahead(new_id(), 10) == 0


def test_who_holds_a_limit_and_who_waits_before_is_told(store: SqlStore) -> None:
    store.open_session(new_session(["default"], ["greet"]))
    wants = [Limit("k", concurrency=4).want({})]
    store.enqueue(new_jobs(6))
    claimed = store.claim(opened_session(store), "default", 6)
    store.admit([(job, wants) for job in claimed])

    (reason,) = explain(store, stored(store, claimed[-1].id), store.now())

    holders = ", ".join(map(str, store.slot_holders("k", 3)))
    assert reason.sentence == f"limit 'k' lets 4 run at once, held by {holders} and 1 more, and 1 job is before it"
    assert reason.estimate is None


def test_how_long_a_job_is_not_due_is_told_by_the_stores_clock(store: SqlStore, clock: SettableClock) -> None:
    job = new_job(delay=timedelta(minutes=10))
    store.enqueue([job])
    clock.advance("4m")

    reasons = explain(store, stored(store, job.id), store.now())

    assert [(reason.code, reason.estimate) for reason in reasons] == [
        ("not_due", timedelta(minutes=6)),
        ("no_worker", None),
    ]
    assert store.now() == clock.now()


def test_a_command_that_is_hinted_at_quotes_what_comes_from_jobs(store: SqlStore) -> None:
    want = want_of(Breaker("{host}"), {"host": "x; rm -rf ~"})
    store.trip_breaker(Trip(key="x; rm -rf ~", lasting=timedelta(hours=1), by="ada"))
    job = new_job()
    store.enqueue([job])
    store.admit([(claimed, [want]) for claimed in store.claim(opened_session(store), "default", 1)])

    (reason, *_) = explain(store, stored(store, job.id), store.now())

    assert reason.lift.endswith("`mainspring breakers reset 'x; rm -rf ~'`")


def after(store: SqlStore, *parents: Job, if_failed: IfFailed = IfFailed.CANCEL) -> UUID:
    """Enqueue a job that comes after others."""
    child = new_job(task="child", parents=tuple(Edge(parent.id, if_failed) for parent in parents))
    store.enqueue([child])
    return child.id


def serve(store: SqlStore, *tasks: str) -> UUID:
    session = new_session(["default"], list(tasks))
    store.open_session(session)
    return session.id


def claim_each(store: SqlStore, count: int) -> list[Job]:
    store.enqueue([new_job(task=f"parent{number}") for number in range(count)])
    return store.claim(serve(store, "child"), "default", count)


def told_of(store: SqlStore, job_id: UUID) -> list[tuple[str, str, str]]:
    reasons = explain(store, stored(store, job_id), store.now())
    return [(reason.code, reason.sentence, reason.lift) for reason in reasons]


def test_a_job_that_waits_for_others_names_them(store: SqlStore) -> None:
    first, second, third, fourth = claim_each(store, 4)
    child = after(store, first, second, third, fourth)
    lone = after(store, fourth)
    store.settle([settle(first, Succeeded("1"))])

    named = f"job {second.id} (parent1) is running, job {third.id} (parent2) is running"
    sentence = f"it waits for 3 of 4 jobs that come before it: {named} and 1 more"
    assert told_of(store, child) == [("dependency", sentence, "it goes on by itself when they have ended")]
    sentence = f"it waits for the job that comes before it: job {fourth.id} (parent3) is running"
    assert told_of(store, lone) == [("dependency", sentence, "it goes on by itself when that has ended")]

    store.settle([settle(job, Succeeded("1")) for job in (second, third, fourth)])
    assert {code for code, _, _ in told_of(store, child)} <= {"behind"}


@pytest.mark.parametrize(("ended", "words"), [("failed", "failed"), ("cancelled", "was cancelled")])
def test_a_job_that_waits_for_a_replay_says_of_which(store: SqlStore, ended: str, words: str) -> None:
    running, parent = claim_each(store, 2)
    child = after(store, running, parent, if_failed=IfFailed.WAIT)
    outcome = Failed(Failure(type="E", message="e")) if ended == "failed" else Cancelled("no")
    store.settle([settle(parent, outcome)])

    dead = f"job {parent.id} (parent1) {words} and is to be replayed"
    sentence = f"it waits for 2 of 2 jobs that come before it: {dead}, job {running.id} (parent0) is running"
    lift = f"replay that one with `mainspring jobs replay {parent.id}`"
    assert told_of(store, child) == [("dependency", sentence, lift)]

    store.pause([child], "on hold")
    assert [code for code, _, _ in told_of(store, child)] == ["dependency", "paused"]

    store.resume([child])
    store.replay([parent.id])
    assert told_of(store, child)[0][2] == "it goes on by itself when they have ended"


def test_of_many_parents_those_that_are_met_are_passed_over(store: SqlStore) -> None:
    parents = claim_each(store, 1_200)
    child = after(store, *parents)
    store.settle([settle(job, Succeeded("1")) for job in parents[:-1]])

    (reason,) = told_of(store, child)
    assert reason[1].endswith(f"1 of 1,200 jobs that come before it: job {parents[-1].id} (parent1199) is running")


def test_a_workflow_names_the_jobs_that_keep_it(store: SqlStore) -> None:
    root = new_id()
    members = [new_job(task=f"member{number}", workflow=root) for number in range(3)]
    last = new_job(task="last", workflow=root, parents=(Edge(members[0].id),))
    plan = encode_plan(Plan(begun=True, output=last.id))
    store.enqueue_workflow(NewWorkflow(new_job(id=root, task="etl", plan=plan, members=4), (*members, last)))
    session = serve(store, "other")  # that nobody knows a task `etl` does not matter
    lift = f"it ends by itself then; `mainspring workflows show {root}` shows all its jobs"

    first, *rest = store.claim(session, "default", 10, ["member0", "member1", "member2"])
    named = f"job {members[0].id} (member0) is running, job {members[1].id} (member1) is running"
    assert told_of(store, root) == [
        ("members", f"it ends when its 4 jobs that are left have: {named} and 2 more", lift)
    ]

    store.settle([settle(job, Succeeded("1")) for job in rest])
    named = f"job {members[0].id} (member0) is running, job {last.id} (last) is blocked"
    assert told_of(store, root) == [("members", f"it ends when its 2 jobs that are left have: {named}", lift)]

    store.settle([settle(first, Succeeded("1"))])
    sentence = f"it ends when its last job has: job {last.id} (last) is ready"
    assert told_of(store, root) == [("members", sentence, lift)]

    store.pause([root], "on hold")
    assert [code for code, _, _ in told_of(store, root)] == ["members", "paused"]

    store.resume([root])
    store.settle([settle(job, Succeeded("1")) for job in store.claim(session, "default", 1, ["last"])])
    while store.release().followed:
        pass
    assert (stored(store, root).state, told_of(store, root)) == (JobState.SUCCEEDED, [])


def test_a_job_after_a_workflow_says_that_it_is_under_way(store: SqlStore) -> None:
    root = new_id()
    plan = encode_plan(Plan(begun=True))
    new = new_job(id=root, task="etl", plan=plan, members=1)
    store.enqueue_workflow(NewWorkflow(new, (new_job(workflow=root),)))
    child = after(store, stored(store, root))
    serve(store, "child")

    ((_, sentence, _),) = told_of(store, child)
    assert sentence == f"it waits for the job that comes before it: job {root} (etl) is under way"
