"""Why a job does not run: whoever may be claimed has no reason, and whoever has none may be claimed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from mainspring.explain import explain
from mainspring.model.job import Job
from mainspring.model.lifecycle import settle
from mainspring.model.limits import Limit
from mainspring.model.outcome import Failed, Failure
from mainspring.model.queue import NewPause, Pausable
from mainspring.model.retry import Retry
from mainspring.model.session import NewSession
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.factories import new_id, new_job, opened_session, stored

STATES = {"ready": None, "scheduled": "not_due", "retrying": "not_due", "paused": "paused", "blocked": "limit"}
AGAINST = ("expired", "queue_paused", "task_paused")


def brought_to(store: SqlStore, state: str, **facts: timedelta) -> Job:
    """Return a new job that is in this state."""
    new = new_job(delay=timedelta(hours=1) if state == "scheduled" else timedelta(0), **facts)
    store.enqueue([new])
    if state in ("retrying", "blocked"):
        (job,) = store.claim(opened_session(store), "default", 1)
        if state == "retrying":
            failed = Failed(Failure(type="E", message="e"), retryable=True)
            store.settle([settle(job, failed, Retry(base="1h", cap="1h"))])
        else:
            wants = [Limit("k", concurrency=1).want({})]
            store.enqueue([new_job(task="other")])
            (other,) = store.claim(opened_session(store), "default", 1)
            store.admit([(replace(other, holds=("k",)), wants)])
            store.admit([(job, wants)])
    if state == "paused":
        store.pause([new.id])
    return stored(store, new.id)


WORKERS = {
    "knows it": (["default"], ["greet"]),
    "knows another": (["default"], ["other"]),
    "elsewhere": (["mail"], ["greet"]),
}


@pytest.mark.parametrize("against", [(), *((one,) for one in AGAINST), AGAINST], ids="+".join)
@pytest.mark.parametrize("worker", [*WORKERS, "none"])
@pytest.mark.parametrize("state", STATES)
def test_a_job_may_be_claimed_exactly_if_nothing_is_said_against_it(
    store: SqlStore, clock: SettableClock, state: str, worker: str, against: tuple[str, ...]
) -> None:
    job = brought_to(store, state, **({"expires": timedelta(seconds=1)} if "expired" in against else {}))
    clock.advance("2h" if state == "scheduled" and "expired" in against else "2s")
    for kind, name in ((Pausable.QUEUE, "default"), (Pausable.TASK, "greet")):
        if f"{kind}_paused" in against:
            store.pause_claims(NewPause(kind=kind, name=name, by="me"))
    for one in store.sessions():
        store.close_session(one.id)
    queues, tasks = WORKERS.get(worker, ([], []))
    session = NewSession(id=new_id(), name="w", lease=timedelta(days=1), queues=queues, tasks=tasks)
    if worker != "none":
        store.open_session(session)

    codes = [reason.code for reason in explain(store, stored(store, job.id), clock.now())]
    claimed = {one.id for queue in queues for one in store.claim(session.id, queue, 100, tasks)}

    assert (job.id in claimed) == (codes == [])
    known = {*against, STATES[state]} - {None}
    expected = [code for code in ("expired", STATES[state], "queue_paused", "task_paused") if code in known]
    assert codes[: len(expected)] == expected
    assert codes[len(expected) :] == (
        [] if worker == "knows it" else ["no_handler" if worker == "knows another" else "no_worker"]
    )


def test_what_is_ahead_is_counted_where_nothing_else_is_in_the_way(store: SqlStore, clock: SettableClock) -> None:
    store.open_session(NewSession(id=new_id(), name="w", lease=timedelta(hours=1), queues=["default"], tasks=["greet"]))
    first, urgent, last = new_job(), new_job(priority=20), new_job(priority=1)
    store.enqueue([first, urgent, last, new_job(queue="mail")])

    told = [
        [reason.sentence for reason in explain(store, stored(store, job.id), clock.now())]
        for job in (urgent, first, last)
    ]

    assert told == [
        [],
        ["1 job is ahead of it in queue 'default'; it runs when its turn comes"],
        ["2 jobs are ahead of it in queue 'default'; it runs when its turn comes"],
    ]
    assert store.jobs_ahead(last.id, 1) == 1
    assert store.jobs_ahead(new_id(), 10) == 0
