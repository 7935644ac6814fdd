"""Many who settle, enqueue and cancel relatives at once: each end counts once, and nobody waits for ever."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from uuid import UUID

import psycopg
import pytest

from mainspring.model.job import Job, JobState
from mainspring.model.lifecycle import settle
from mainspring.model.links import IfFailed
from mainspring.model.outcome import Cancelled, Succeeded
from mainspring.store import open_store
from mainspring.store.sql import SqlStore
from tests.races.test_claim_races import at_once
from tests.races.test_limit_races import _waiting as waiting
from tests.races.test_limit_races import deadlocks
from tests.support.databases import execute
from tests.support.factories import (
    FAILURE,
    SUCCESS,
    child_of,
    claimed_job,
    claimed_jobs,
    end,
    new_job,
    new_jobs,
    new_workflow,
    state_of,
    stored,
    work_off,
)
from tests.support.waiting import until, waiting_for_a_lock

THREADS = 6


@pytest.fixture
def stores(url: str) -> Iterator[list[SqlStore]]:
    """As many stores on one database as there are threads, as if each were a process."""
    opened = [open_store(url) for _ in range(THREADS)]
    yield opened
    for store in opened:
        store.close()


def settle_all(store: SqlStore, jobs: list[Job]) -> None:
    """Settle *jobs* in small batches, in the order given."""
    for first in range(0, len(jobs), 3):
        store.settle([settle(job, SUCCESS) for job in jobs[first : first + 3]])


def test_settles_that_share_children_and_a_workflow_count_each_end_once(stores: list[SqlStore]) -> None:
    parents = new_jobs(THREADS * 10)
    children = [child_of(*parents[n::4]) for n in range(4)] + [child_of(*parents)]
    new = new_workflow(*parents, *children)
    stores[0].enqueue_workflow(new)
    held = list(claimed_jobs(stores[0]).values())

    at_once(*(partial(settle_all, store, held[n::THREADS]) for n, store in enumerate(stores)))

    assert {state_of(stores[0], child) for child in children} == {JobState.READY}
    assert stored(stores[0], new.job.id).pending == len(children)
    work_off(stores[0])
    assert state_of(stores[0], new.job) is JobState.SUCCEEDED


def test_settles_that_share_children_do_not_wait_for_each_other_in_a_circle(postgres_url: str) -> None:
    """Each holds its own parents, and wants the children in whatever order it knows them by."""
    stores = [open_store(postgres_url) for _ in range(THREADS)]
    parents = new_jobs(THREADS * 20)
    stores[0].enqueue([*parents, *(child_of(*parents) for _ in range(20))])
    held = list(claimed_jobs(stores[0]).values())

    at_once(*(partial(settle_all, store, held[n::THREADS][:: -1 if n % 2 else 1]) for n, store in enumerate(stores)))

    assert stores[0].counts() == {"default": {JobState.READY: 20}}
    assert deadlocks(postgres_url) == 0
    for store in stores:
        store.close()


def test_a_parent_that_is_settled_while_its_child_is_enqueued_sets_it_free(stores: list[SqlStore]) -> None:
    one, other = stores[:2]
    for _ in range(40):
        parent = claimed_job(one)
        child = child_of(parent)

        at_once(partial(one.settle, [settle(parent, SUCCESS)]), partial(other.enqueue, [child]))

        assert state_of(one, child) is JobState.READY
        assert list(claimed_jobs(one)) == [child.id]


def test_a_settle_waits_for_the_enqueue_that_has_the_parent_and_then_sees_the_child(postgres_url: str) -> None:
    """The one statement of a common settle has begun by then, and must not end a parent that has children now."""
    store = open_store(postgres_url)
    parent = claimed_job(store)
    child = new_job()
    edge = f"INSERT INTO mainspring.edges VALUES ('{parent.id}', '{child.id}', 'cancel')"
    store.enqueue([child])
    execute(postgres_url, f"UPDATE mainspring.jobs SET state = 'blocked', pending = 1 WHERE id = '{child.id}'")
    with ThreadPoolExecutor(1) as pool, psycopg.connect(postgres_url) as enqueueing:
        enqueueing.execute(f"UPDATE mainspring.jobs SET awaited = true WHERE id = '{parent.id}'".encode())
        settling = pool.submit(store.settle, [settle(parent, SUCCESS)])
        until(lambda: waiting_for_a_lock(postgres_url))
        enqueueing.execute(edge.encode())
        enqueueing.commit()
        assert settling.result() == {parent.id}

    assert state_of(store, child) is JobState.READY
    store.close()


def test_a_parent_that_has_children_does_not_end_while_another_is_enqueued(postgres_url: str) -> None:
    """It is marked as a parent already, so the enqueue has nothing to write to it, and must lock it all the same."""
    store = open_store(postgres_url)
    parent = claimed_job(store)
    store.enqueue([child_of(parent)])
    child = child_of(parent, key="k")
    with ThreadPoolExecutor(2) as pool, psycopg.connect(postgres_url) as holder:
        store.enqueue([new_job(key="k")], holder)
        enqueueing = pool.submit(store.enqueue, [child])
        until(lambda: waiting(postgres_url) == 1)
        settling = pool.submit(store.settle, [settle(parent, SUCCESS)])
        until(lambda: waiting(postgres_url) == 2 or settling.done())
        holder.rollback()
        assert (enqueueing.result(), settling.result()) == ([child.id], {parent.id})

    assert state_of(store, child) is JobState.READY
    store.close()


def test_a_dead_parent_is_not_replayed_while_a_child_of_it_is_enqueued(postgres_url: str) -> None:
    """Who replays it looks whether anybody waits for it, and would not see the child."""
    store = open_store(postgres_url)
    parent = claimed_job(store)
    store.settle([settle(parent, FAILURE)])
    child = child_of(parent, if_failed=IfFailed.WAIT, key="k")
    with ThreadPoolExecutor(2) as pool, psycopg.connect(postgres_url) as holder:
        store.enqueue([new_job(key="k")], holder)
        enqueueing = pool.submit(store.enqueue, [child])
        until(lambda: waiting(postgres_url) == 1)
        replaying = pool.submit(store.replay, [parent.id])
        until(lambda: waiting(postgres_url) == 2 or replaying.done())
        holder.rollback()
        assert (enqueueing.result(), replaying.result()) == ([child.id], {parent.id: JobState.READY})

    end(store, parent)
    assert state_of(store, child) is JobState.READY
    store.close()


def test_a_cancel_does_not_keep_its_workflow_from_a_member_that_is_being_settled(postgres_url: str) -> None:
    """Who settles has the member, and wants its workflow. Who cancels wants both."""
    one, other = open_store(postgres_url), open_store(postgres_url)
    first = new_job()
    new = new_workflow(first, child_of(first))
    one.enqueue_workflow(new)
    (job,) = claimed_jobs(one).values()
    with ThreadPoolExecutor(2) as pool, psycopg.connect(postgres_url) as holder:
        holder.execute("SELECT FROM mainspring.edges FOR UPDATE")
        settling = pool.submit(one.settle, [settle(job, SUCCESS)])
        until(lambda: waiting(postgres_url) == 1)
        cancelling = pool.submit(other.cancel, [new.job.id])
        until(lambda: waiting(postgres_url) == 2)
        holder.rollback()
        assert (settling.result(), cancelling.result()) == ({job.id}, {new.job.id: JobState.CANCELLED})

    assert deadlocks(postgres_url) == 0
    one.close()
    other.close()


def test_a_workflow_that_is_cancelled_while_its_members_are_settled_ends_once(stores: list[SqlStore]) -> None:
    for _ in range(5):
        new = new_workflow(*new_jobs(12))
        stores[0].enqueue_workflow(new)
        held = list(claimed_jobs(stores[0]).values())

        at_once(
            partial(settle_all, stores[0], held[:6]),
            partial(settle_all, stores[1], held[6:]),
            lambda: stores[2].cancel([new.job.id], "enough"),  # noqa: B023
        )
        work_off(stores[0])

        assert state_of(stores[0], new.job) in (JobState.SUCCEEDED, JobState.CANCELLED)
        assert stores[0].counts() == {}


def test_members_that_are_added_while_their_workflow_is_cancelled_are_cancelled_or_counted(
    stores: list[SqlStore],
) -> None:
    for _ in range(10):
        new = new_workflow(*new_jobs(2))
        stores[0].enqueue_workflow(new)
        one, other = claimed_jobs(stores[0]).values()
        added = tuple(new_job(workflow=new.job.id) for _ in range(2))

        at_once(
            partial(stores[0].settle, [settle(one, Succeeded("1", added=added))]),
            partial(stores[1].cancel, [new.job.id]),
        )
        stores[0].settle([settle(other, Cancelled())])
        work_off(stores[0])

        assert state_of(stores[0], new.job) is JobState.CANCELLED
        assert stores[0].counts() == {}


def test_follow_ups_are_shared_by_many_nodes_and_done_once(stores: list[SqlStore]) -> None:
    chains: list[UUID] = []
    for _ in range(30):
        parent = new_job(expires=timedelta(microseconds=1))
        child = child_of(parent)
        last = child_of(child, queue="other")
        stores[0].enqueue([parent, child, last])
        chains.append(last.id)
    stores[0].expire()

    def follow(store: SqlStore) -> int:
        return sum(store.release().followed for _ in range(20))

    at_once(*(partial(follow, store) for store in stores))
    while stores[0].release().followed:
        pass

    assert {job.state for job in stores[0].get(chains).values()} == {JobState.CANCELLED}
    assert stores[0].counts() == {}


def test_a_replay_beside_the_follow_up_of_the_same_end_counts_it_once(stores: list[SqlStore]) -> None:
    for _ in range(15):
        new = new_workflow(new_job(expires=timedelta(microseconds=1)), new_job(delay=timedelta(hours=1)))
        stores[0].enqueue_workflow(new)
        while not stores[0].expire().count:
            pass

        at_once(partial(stores[0].replay, [new.members[0].id]), stores[1].release)
        while stores[0].release().followed:
            pass

        assert stored(stores[0], new.job.id).pending == 2
        stores[0].cancel([new.job.id])
