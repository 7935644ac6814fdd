"""Dependencies: a job that has parents waits for them, and goes on by what they come to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from mainspring.errors import InvalidValue, JobNotFound, KeyTaken, StoreError
from mainspring.model.job import IfTaken, Job, JobState, NewJob
from mainspring.model.lifecycle import settle
from mainspring.model.links import MOST_PARENTS, Edge, IfFailed
from mainspring.model.outcome import Cancelled, Failed, Lost, Returned, Snoozed, Succeeded
from mainspring.model.retry import Retry
from mainspring.store import open_store
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.databases import connected, execute
from tests.support.factories import (
    FAILURE,
    SUCCESS,
    child_of,
    claimed_job,
    claimed_jobs,
    end,
    new_id,
    new_job,
    new_jobs,
    opened_session,
    state_of,
    stored,
    work_off,
)
from tests.support.refusal import refusing

BLOCKED, SCHEDULED, READY, RUNNING = JobState.BLOCKED, JobState.SCHEDULED, JobState.READY, JobState.RUNNING
PAUSED, SUCCEEDED, CANCELLED, EXPIRED = JobState.PAUSED, JobState.SUCCEEDED, JobState.CANCELLED, JobState.EXPIRED
HOUR = timedelta(hours=1)


def family(store: SqlStore, parents: int = 1, **changes: Any) -> tuple[list[Job], NewJob]:
    """Return running parents, and a child that waits for them."""
    store.enqueue(new_jobs(parents))
    held = list(claimed_jobs(store).values())
    child = child_of(*held, **changes)
    store.enqueue([child])
    return held, child


def edges(url: str) -> list[tuple[Any, ...]]:
    table = "mainspring_edges" if url.startswith("sqlite") else "mainspring.edges"
    return execute(url, f"SELECT parent, child FROM {table}")


# --- setting free --------------------------------------------------------------------------------------------


def test_a_child_waits_for_its_parent(store: SqlStore) -> None:
    parent = new_job()
    child = child_of(parent)

    assert store.enqueue([parent, child]) == [parent.id, child.id]

    waiting = stored(store, child.id)
    assert (waiting.state, waiting.pending) == (BLOCKED, 1)
    assert waiting.beginnings.parents == (Edge(parent.id),)
    assert list(claimed_jobs(store)) == [parent.id]


def test_the_settle_of_the_parent_sets_the_child_free_by_itself(url: str, store: SqlStore) -> None:
    (parent,), child = family(store)

    store.settle([settle(parent, SUCCESS)])

    assert (state_of(store, child), stored(store, child.id).pending) == (READY, 0)
    assert edges(url) == []
    assert store.release().followed == 0


def test_a_parent_that_was_claimed_before_it_had_children_sets_them_free(store: SqlStore) -> None:
    """Its worker does not know of them: it settles the job as it claimed it, with one statement if it may."""
    parent = claimed_job(store)
    assert not parent.awaited
    child = child_of(parent)
    store.enqueue([child])

    assert store.settle([settle(parent, SUCCESS)]) == {parent.id}

    assert state_of(store, child) is READY


def test_one_with_children_does_not_keep_the_rest_of_its_batch_waiting(store: SqlStore) -> None:
    store.enqueue(new_jobs(3))
    held = list(claimed_jobs(store).values())
    child = child_of(held[1])
    store.enqueue([child])

    assert store.settle([settle(job, SUCCESS) for job in held]) == {job.id for job in held}

    assert state_of(store, child) is READY


def test_the_last_parent_to_end_sets_the_child_free(store: SqlStore) -> None:
    parents, child = family(store, 3)

    for left, parent in zip((2, 1), parents, strict=False):
        store.settle([settle(parent, SUCCESS)])
        assert (state_of(store, child), stored(store, child.id).pending) == (BLOCKED, left)
    store.settle([settle(parents[2], SUCCESS)])

    assert state_of(store, child) is READY


def test_parents_that_end_together_are_counted_together(store: SqlStore) -> None:
    parents, child = family(store, 3)

    store.settle([settle(parent, SUCCESS) for parent in parents])

    assert state_of(store, child) is READY


def test_a_parent_sets_all_its_children_free(store: SqlStore) -> None:
    parent = new_job()
    children = [child_of(parent) for _ in range(500)]
    store.enqueue([parent, *children])

    end(store, parent)

    assert store.counts() == {"default": {READY: 500}}


def test_children_run_after_their_parents_all_the_way_down(store: SqlStore) -> None:
    first = new_job()
    left, right = child_of(first), child_of(first)
    last = child_of(left, right)
    store.enqueue([first, left, right, last])

    assert work_off(store) == [first.id, left.id, right.id, last.id]


@pytest.mark.parametrize("outcome", [Snoozed(HOUR), Returned(), Failed(FAILURE.failure), Lost("gone")])
def test_a_parent_that_goes_on_keeps_its_child_waiting(store: SqlStore, outcome: Snoozed | Returned) -> None:
    (parent,), child = family(store)

    store.settle([settle(parent, outcome, Retry(max_attempts=2))])

    assert (state_of(store, child), stored(store, child.id).pending) == (BLOCKED, 1)


def test_a_stale_settle_of_the_parent_sets_nobody_free(store: SqlStore) -> None:
    (parent,), child = family(store)
    store.settle([settle(parent, Returned())])

    assert store.settle([settle(parent, SUCCESS)]) == set()

    assert state_of(store, child) is BLOCKED


def test_a_settle_that_fails_halfway_leaves_parent_and_child_as_they_were(url: str, store: SqlStore) -> None:
    (parent,), child = family(store)

    with refusing(url, "DELETE", "edges"), pytest.raises(StoreError, match="refused"):
        store.settle([settle(parent, SUCCESS)])

    assert (state_of(store, parent), state_of(store, child)) == (RUNNING, BLOCKED)
    store.settle([settle(parent, SUCCESS)])
    assert state_of(store, child) is READY


def test_a_transaction_that_succeeds_its_job_sets_the_child_free(store: SqlStore) -> None:
    (parent,), child = family(store)

    with store.transaction(lambda: settle(parent, SUCCESS)):
        pass

    assert state_of(store, child) is READY


def test_children_that_come_with_a_success_know_that_it_has_ended(store: SqlStore) -> None:
    parent = claimed_job(store)
    child = child_of(parent)
    grandchild = child_of(child)

    store.settle([settle(parent, Succeeded("1", added=(child, grandchild)))])

    assert (state_of(store, child), state_of(store, grandchild)) == (READY, BLOCKED)
    assert work_off(store) == [child.id, grandchild.id]


# --- parents that have ended before --------------------------------------------------------------------------


def test_a_child_of_a_parent_that_has_succeeded_does_not_wait(url: str, store: SqlStore) -> None:
    parent = new_job()
    store.enqueue([parent])
    end(store, parent)
    child = child_of(parent)

    store.enqueue([child])

    assert state_of(store, child) is READY
    assert edges(url) == []


@pytest.mark.parametrize(("if_failed", "state"), [("cancel", CANCELLED), ("run", READY), ("wait", BLOCKED)])
def test_a_child_of_a_parent_that_has_failed_does_as_it_says(store: SqlStore, if_failed: str, state: JobState) -> None:
    parent = new_job()
    store.enqueue([parent])
    end(store, parent, FAILURE)
    child = child_of(parent, if_failed=IfFailed(if_failed))

    assert store.enqueue([child]) == [child.id]

    assert state_of(store, child) is state


def test_only_parents_that_live_are_waited_for(store: SqlStore) -> None:
    done = new_job()
    store.enqueue([done])
    end(store, done)
    live = new_job()
    child = child_of(done, live)
    store.enqueue([live, child])
    assert stored(store, child.id).pending == 1

    end(store, live)

    assert state_of(store, child) is READY


def test_the_children_of_a_child_that_is_stillborn_are_cancelled_too(store: SqlStore) -> None:
    parent = new_job()
    store.enqueue([parent])
    end(store, parent, FAILURE)
    child = child_of(parent)
    grandchild = child_of(child)

    store.enqueue([child, grandchild])
    store.release()

    assert (state_of(store, child), state_of(store, grandchild)) == (CANCELLED, CANCELLED)


# --- parents that end badly ----------------------------------------------------------------------------------


def failed(store: SqlStore, clock: SettableClock, parent: Job) -> None:
    store.settle([settle(parent, FAILURE)])


def exhausted(store: SqlStore, clock: SettableClock, parent: Job) -> None:
    store.settle([settle(parent, Failed(FAILURE.failure), Retry(max_attempts=1))])


def stopped(store: SqlStore, clock: SettableClock, parent: Job) -> None:
    store.cancel([parent.id])
    store.settle([settle(parent, Cancelled("asked"))])


def cancelled_while_it_failed(store: SqlStore, clock: SettableClock, parent: Job) -> None:
    store.cancel([parent.id])
    store.settle([settle(parent, Failed(FAILURE.failure), Retry(max_attempts=5))])


def cancelled_waiting(store: SqlStore, clock: SettableClock, parent: Job) -> None:
    store.settle([settle(parent, Returned())])
    store.cancel([parent.id])


def expired(store: SqlStore, clock: SettableClock, parent: Job) -> None:
    store.settle([settle(parent, Returned())])
    clock.advance("2h")
    assert store.expire().count == 1


def quarantined(store: SqlStore, clock: SettableClock, parent: Job) -> None:
    for _ in range(3):
        store.settle([settle(parent, Returned())])
        (parent,) = store.claim(opened_session(store), "default", 1)
        store.charge(parent)
        clock.advance("1m")
        store.reap()
    assert state_of(store, parent) is JobState.FAILED


Ending = Callable[[SqlStore, SettableClock, Job], None]
BAD_ENDINGS = [
    failed, exhausted, stopped, cancelled_while_it_failed, cancelled_waiting, expired, quarantined,
]  # fmt: skip


@pytest.mark.parametrize(("if_failed", "state"), [("cancel", CANCELLED), ("run", READY), ("wait", BLOCKED)])
@pytest.mark.parametrize("ending", BAD_ENDINGS)
def test_a_child_does_as_it_says_when_its_parent_ends_badly(
    store: SqlStore, clock: SettableClock, ending: Ending, if_failed: str, state: JobState
) -> None:
    parent = claimed_job(store, opened_session(store, lease=timedelta(days=900)), expires=HOUR)
    child = child_of(parent, if_failed=IfFailed(if_failed))
    store.enqueue([child])

    ending(store, clock, parent)
    while store.release().followed:
        pass

    after = stored(store, child.id)
    assert after.state is state
    if state is CANCELLED:
        assert after.reason == f"its parent {parent.id} {state_of(store, parent)}"


@pytest.mark.parametrize(("if_failed", "state"), [("cancel", CANCELLED), ("run", PAUSED), ("wait", PAUSED)])
def test_a_child_that_is_paused_does_as_it_says_too(store: SqlStore, if_failed: str, state: JobState) -> None:
    (parent,), child = family(store, if_failed=IfFailed(if_failed))
    store.pause([child.id])

    store.settle([settle(parent, FAILURE)])

    assert state_of(store, child) is state
    store.resume([child.id])
    assert state_of(store, child) is {"cancel": CANCELLED, "run": READY, "wait": BLOCKED}[if_failed]


def test_one_bad_parent_is_enough_and_the_others_no_longer_matter(url: str, store: SqlStore) -> None:
    (good, bad, late), child = family(store, 3)

    store.settle([settle(good, SUCCESS), settle(bad, FAILURE)])
    assert state_of(store, child) is CANCELLED
    store.settle([settle(late, SUCCESS)])

    assert state_of(store, child) is CANCELLED
    assert edges(url) == []


def test_each_parent_has_a_policy_of_its_own(store: SqlStore) -> None:
    store.enqueue(new_jobs(2))
    strict, lax = claimed_jobs(store).values()
    child = new_job(parents=(Edge(strict.id, IfFailed.CANCEL), Edge(lax.id, IfFailed.RUN)))
    store.enqueue([child])

    store.settle([settle(lax, FAILURE)])
    assert state_of(store, child) is BLOCKED
    store.settle([settle(strict, SUCCESS)])

    assert state_of(store, child) is READY


def test_the_cancellation_goes_all_the_way_down_but_for_those_who_run_anyway(store: SqlStore) -> None:
    (parent,), child = family(store)
    grandchild = child_of(child)
    cleanup = child_of(grandchild, if_failed=IfFailed.RUN)
    store.enqueue([grandchild, cleanup])

    store.settle([settle(parent, FAILURE)])
    assert state_of(store, child) is CANCELLED  # by the settle itself; the rest is followed up

    assert work_off(store) == [cleanup.id]
    assert state_of(store, grandchild) is CANCELLED


def test_who_has_followed_something_up_is_to_look_again_at_once(store: SqlStore) -> None:
    """For that may have left more to be followed up."""
    (parent,), child = family(store)
    store.enqueue([child_of(child)])
    store.settle([settle(parent, FAILURE)])

    released = store.release()

    assert (released.followed, released.next_due) == (1, timedelta(0))
    assert store.release().next_due is None


def test_a_cancel_of_a_parent_that_waits_is_followed_to_the_end_before_it_returns(store: SqlStore) -> None:
    parent = new_job()
    child = child_of(parent)
    grandchild = child_of(child)
    store.enqueue([parent, child, grandchild])

    store.cancel([parent.id])

    assert state_of(store, grandchild) is CANCELLED


def test_a_child_that_waits_for_a_replay_runs_when_that_succeeds(store: SqlStore) -> None:
    (parent,), child = family(store, if_failed=IfFailed.WAIT)
    store.settle([settle(parent, FAILURE)])

    store.replay([parent.id])
    end(store, parent, FAILURE)
    assert state_of(store, child) is BLOCKED
    store.replay([parent.id])
    end(store, parent)

    assert state_of(store, child) is READY


# --- what can't be enqueued ----------------------------------------------------------------------------------


def test_an_unknown_parent_is_an_error_and_nothing_is_stored(store: SqlStore) -> None:
    unknown = new_job()

    with pytest.raises(JobNotFound, match=str(unknown.id)):
        store.enqueue([new_job(), child_of(unknown)])

    assert store.page() == []


def test_a_parent_that_is_younger_or_the_job_itself_is_an_error(store: SqlStore) -> None:
    old, young = new_id(), new_id()

    for parent in (young, old):
        with pytest.raises(InvalidValue, match="older than it"):
            new_job(id=old, parents=(Edge(parent),))


def test_a_parent_that_is_named_twice_is_an_error() -> None:
    parent = new_id()

    with pytest.raises(InvalidValue, match="named once"):
        new_job(parents=(Edge(parent), Edge(parent, IfFailed.RUN)))


def test_too_many_parents_are_an_error() -> None:
    parents = tuple(Edge(new_id()) for _ in range(MOST_PARENTS + 1))

    with pytest.raises(InvalidValue, match="at most 10,000 parents, got 10,001"):
        new_job(parents=parents)


def test_as_many_parents_as_may_be_are_waited_for(store: SqlStore) -> None:
    parents = new_jobs(MOST_PARENTS)
    child = child_of(*parents)
    store.enqueue([*parents, child])
    assert stored(store, child.id).pending == MOST_PARENTS
    session = opened_session(store)

    while jobs := store.claim(session, "default", 2_000):
        if jobs[0].id == child.id:
            break
        store.settle([settle(job, SUCCESS) for job in jobs])

    assert state_of(store, child) is RUNNING


# --- keys ----------------------------------------------------------------------------------------------------


def test_a_child_whose_key_is_taken_is_not_linked(url: str, store: SqlStore) -> None:
    holder, parent = new_job(key="k"), new_job()
    store.enqueue([holder, parent])
    child = child_of(parent, key="k")

    assert store.enqueue([child]) == [holder.id]

    assert edges(url) == []
    assert stored(store, holder.id).pending is None
    assert len(work_off(store)) == 2


def test_a_child_with_a_free_key_waits_and_holds_it(store: SqlStore) -> None:
    (parent,), child = family(store, key="k")

    assert store.enqueue([new_job(key="k")]) == [child.id]
    store.settle([settle(parent, SUCCESS)])

    assert state_of(store, child) is READY


def test_a_child_that_waits_gives_way_without_being_set_free(store: SqlStore) -> None:
    (parent,), child = family(store, key="k")
    asked = new_job(key="k", if_taken=IfTaken.RESCHEDULE, payload='{"args":[2],"kwargs":{}}', delay=HOUR)

    assert store.enqueue([asked]) == [child.id]
    assert (state_of(store, child), stored(store, child.id).payload) == (BLOCKED, asked.payload)
    store.settle([settle(parent, SUCCESS)])

    assert state_of(store, child) is SCHEDULED


def test_a_child_whose_parent_in_the_same_call_stands_for_another_does_not_wait_for_ever(store: SqlStore) -> None:
    """The parent's key is taken, so the parent is never stored under the id by which the child knows it."""
    holder = new_job(key="k")
    store.enqueue([holder])
    parent = new_job(key="k")

    with pytest.raises(KeyTaken, match="another job has its key 'k'"):
        store.enqueue([parent, child_of(parent)])

    assert [job.id for job in store.page()] == [holder.id]


def test_a_repeated_request_for_a_whole_family_stands_for_the_first(store: SqlStore) -> None:
    parent = new_job(idempotency_key="p")
    child = child_of(parent, idempotency_key="c")
    store.enqueue([parent, child])
    again = new_job(idempotency_key="p")

    assert store.enqueue([again, child_of(again, idempotency_key="c")]) == [parent.id, child.id]

    assert work_off(store) == [parent.id, child.id]


def test_an_idempotency_key_that_comes_again_links_nothing_anew(url: str, store: SqlStore) -> None:
    (parent,), child = family(store, idempotency_key="i")

    assert store.enqueue([child_of(parent, idempotency_key="i")]) == [child.id]

    assert len(edges(url)) == 1
    assert stored(store, child.id).pending == 1


# --- people --------------------------------------------------------------------------------------------------


def test_a_child_that_is_paused_and_resumed_waits_again(store: SqlStore) -> None:
    (parent,), child = family(store)

    assert store.pause([child.id]) == {child.id: PAUSED}
    assert store.resume([child.id]) == {child.id: BLOCKED}
    store.settle([settle(parent, SUCCESS)])

    assert state_of(store, child) is READY


def test_a_child_whose_parent_ends_while_it_is_paused_goes_on_when_it_is_resumed(store: SqlStore) -> None:
    (parent,), child = family(store)
    store.pause([child.id])

    store.settle([settle(parent, SUCCESS)])
    assert state_of(store, child) is PAUSED

    assert store.resume([child.id]) == {child.id: READY}


def test_a_child_that_is_cancelled_stays_so_when_its_parent_ends(url: str, store: SqlStore) -> None:
    (parent,), child = family(store)

    assert store.cancel([child.id], "not needed") == {child.id: CANCELLED}
    store.settle([settle(parent, SUCCESS)])

    assert (state_of(store, child), stored(store, child.id).reason) == (CANCELLED, "not needed")
    assert edges(url) == []


def test_a_cancelled_child_that_is_replayed_waits_for_its_parent_again(store: SqlStore) -> None:
    (parent,), child = family(store)
    store.cancel([child.id])

    assert store.replay([child.id]) == {child.id: BLOCKED}
    store.settle([settle(parent, SUCCESS)])

    assert state_of(store, child) is READY


@pytest.mark.parametrize(("if_failed", "state"), [("cancel", CANCELLED), ("run", READY), ("wait", BLOCKED)])
def test_a_replayed_child_looks_at_its_parent_anew(store: SqlStore, if_failed: str, state: JobState) -> None:
    (parent,), child = family(store, if_failed=IfFailed(if_failed))
    store.cancel([child.id])
    store.settle([settle(parent, FAILURE)])

    assert store.replay([child.id]) == {child.id: state}


def test_a_child_that_lives_again_after_its_parents_success_does_not_wait(store: SqlStore) -> None:
    (parent,), child = family(store)
    store.cancel([child.id])
    store.settle([settle(parent, SUCCESS)])

    assert store.replay([child.id]) == {child.id: READY}


def test_parent_and_child_that_are_replayed_together_keep_their_order(store: SqlStore) -> None:
    (parent,), child = family(store)
    store.settle([settle(parent, FAILURE)])

    assert store.replay([child.id, parent.id]) == {parent.id: READY, child.id: BLOCKED}

    assert work_off(store) == [parent.id, child.id]


def test_a_parent_that_expired_and_is_replayed_before_that_was_followed_up_keeps_its_child(
    store: SqlStore, clock: SettableClock
) -> None:
    parent = new_job(expires=HOUR)
    child = child_of(parent)
    store.enqueue([parent, child])
    clock.advance("2h")
    store.expire()

    store.replay([parent.id])

    assert work_off(store) == [parent.id, child.id]


def test_a_parent_that_can_not_live_again_still_ends_for_its_child(store: SqlStore, clock: SettableClock) -> None:
    """What was left to be told of its end is taken back by the replay, which finds its key taken."""
    parent = new_job(expires=HOUR, key="k")
    child = child_of(parent)
    store.enqueue([parent, child])
    clock.advance("2h")
    store.expire()
    store.enqueue([new_job(key="k", queue="other")])

    assert store.replay([parent.id]) == {parent.id: EXPIRED}

    store.release()
    assert state_of(store, child) is CANCELLED


def test_a_parent_of_whose_end_nobody_was_told_is_not_counted_against_a_child_that_lives_again(
    store: SqlStore, clock: SettableClock
) -> None:
    """The replay has looked at its parents already, the expired one among them; the edge from that is old."""
    gone, live = new_job(expires=HOUR), new_job()
    child = child_of(gone, live, if_failed=IfFailed.RUN)
    store.enqueue([gone, live, child])
    clock.advance("2h")
    store.expire()

    store.cancel([child.id])
    store.replay([child.id])
    store.release()

    assert (state_of(store, child), stored(store, child.id).pending) == (BLOCKED, 1)


def test_of_several_parents_that_end_badly_together_the_oldest_is_named(store: SqlStore) -> None:
    parents, child = family(store, 3)

    store.settle([settle(parent, FAILURE) for parent in reversed(parents)])

    assert stored(store, child.id).reason == f"its parent {min(parent.id for parent in parents)} failed"


# --- times and turns -----------------------------------------------------------------------------------------


def test_the_time_to_start_counts_from_the_moment_the_parents_let_it_go(store: SqlStore, clock: SettableClock) -> None:
    (parent,), child = family(store, expires=HOUR)
    assert stored(store, child.id).expires_at is None
    clock.advance("5h")
    assert store.expire().count == 0

    store.settle([settle(parent, SUCCESS)])

    assert stored(store, child.id).expires_at == clock.now() + HOUR
    clock.advance("1h")
    assert store.expire().count == 1
    assert state_of(store, child) is EXPIRED


def test_the_time_to_start_counts_from_the_due_time_where_that_comes_later(
    store: SqlStore, clock: SettableClock
) -> None:
    due = clock.now() + 5 * HOUR
    (parent,), child = family(store, run_at=due, expires=HOUR)

    store.settle([settle(parent, SUCCESS)])

    assert stored(store, child.id).expires_at == due + HOUR


def test_a_child_that_was_paused_when_its_parents_let_it_go_has_its_time_from_the_resume_on(
    store: SqlStore, clock: SettableClock
) -> None:
    (parent,), child = family(store, expires=HOUR)
    store.pause([child.id])
    store.settle([settle(parent, SUCCESS)])
    clock.advance("5h")

    store.resume([child.id])

    assert stored(store, child.id).expires_at == clock.now() + HOUR


def test_a_child_that_is_due_later_than_its_parents_end_is_scheduled(store: SqlStore, clock: SettableClock) -> None:
    due = clock.now() + HOUR
    (parent,), child = family(store, run_at=due)

    store.settle([settle(parent, SUCCESS)])

    assert (state_of(store, child), stored(store, child.id).run_at) == (SCHEDULED, due)
    clock.advance("1h")
    assert store.promote().count == 1
    assert state_of(store, child) is READY


def test_a_child_whose_time_comes_before_its_parents_end_is_not_promoted(store: SqlStore, clock: SettableClock) -> None:
    _, child = family(store, delay=HOUR)
    clock.advance("2h")

    assert store.promote().count == 0

    assert state_of(store, child) is BLOCKED


def test_a_child_with_a_fair_key_gets_its_turn_when_it_is_free(store: SqlStore) -> None:
    (parent,), child = family(store, fair="acme")
    store.enqueue([new_job(fair="other")])

    store.settle([settle(parent, SUCCESS)])
    assert state_of(store, child) is SCHEDULED
    assert store.promote().count == 1

    assert state_of(store, child) is READY
    assert len(claimed_jobs(store)) == 2


# --- in a transaction of the caller's ------------------------------------------------------------------------


@pytest.fixture
def conn(url: str, store: SqlStore) -> Iterator[Any]:
    with connected(url) as opened:
        yield opened


def test_a_child_in_a_callers_transaction_is_linked_by_the_release_after_it(store: SqlStore, conn: Any) -> None:
    parent = new_job()
    store.enqueue([parent])
    child = child_of(parent)
    store.enqueue([child], conn)
    conn.commit()
    assert stored(store, child.id).pending == 1

    assert store.release().followed == 1
    assert state_of(store, child) is BLOCKED
    end(store, parent)

    assert state_of(store, child) is READY


def test_a_family_in_a_callers_transaction_runs_in_order(store: SqlStore, conn: Any) -> None:
    parent = new_job()
    child = child_of(parent)
    store.enqueue([parent, child], conn)
    conn.commit()

    assert work_off(store) == [parent.id, child.id]


def test_a_rolled_back_child_leaves_nothing(url: str, store: SqlStore, conn: Any) -> None:
    parent = new_job()
    store.enqueue([parent])
    child = child_of(parent)
    store.enqueue([child], conn)

    conn.rollback()

    assert store.get([child.id]) == {}
    assert (store.release().followed, edges(url)) == (0, [])


def test_an_unknown_parent_is_an_error_in_a_callers_transaction_too(store: SqlStore, conn: Any) -> None:
    with pytest.raises(JobNotFound):
        store.enqueue([child_of(new_job())], conn)


def test_a_parent_is_not_locked_for_as_long_as_a_caller_likes(postgres_url: str) -> None:
    store = open_store(postgres_url)
    parent = claimed_job(store)
    child = child_of(parent)
    with connected(postgres_url) as conn:
        store.enqueue([child], conn)
        store.settle([settle(parent, SUCCESS)])  # and not after its deadline
        conn.commit()

    store.release()

    assert state_of(store, child) is READY
    store.close()


@pytest.mark.parametrize(("if_failed", "state"), [("cancel", CANCELLED), ("run", READY), ("wait", BLOCKED)])
def test_a_parent_that_failed_before_its_child_was_linked_is_judged_then(
    store: SqlStore, conn: Any, if_failed: str, state: JobState
) -> None:
    parent = claimed_job(store)
    child = child_of(parent, if_failed=IfFailed(if_failed))
    store.enqueue([child], conn)
    conn.commit()
    store.settle([settle(parent, FAILURE)])
    assert state_of(store, child) is BLOCKED

    store.release()

    assert state_of(store, child) is state


def test_some_parents_may_have_ended_before_the_child_was_linked(store: SqlStore, conn: Any) -> None:
    store.enqueue(new_jobs(2))
    one, other = claimed_jobs(store).values()
    child = child_of(one, other)
    store.enqueue([child], conn)
    conn.commit()

    store.settle([settle(one, SUCCESS)])
    store.release()
    assert (state_of(store, child), stored(store, child.id).pending) == (BLOCKED, 1)
    store.settle([settle(other, SUCCESS)])

    assert state_of(store, child) is READY


def test_a_child_that_was_cancelled_and_replayed_before_it_was_linked_is_counted_once(
    store: SqlStore, conn: Any
) -> None:
    store.enqueue(new_jobs(2))
    one, other = claimed_jobs(store).values()
    store.settle([settle(one, SUCCESS)])
    child = child_of(one, other)
    store.enqueue([child], conn)
    conn.commit()

    store.cancel([child.id])
    store.replay([child.id])
    store.release()

    assert (state_of(store, child), stored(store, child.id).pending) == (BLOCKED, 1)


def test_a_child_that_is_paused_before_it_was_linked_stays_so(store: SqlStore, conn: Any) -> None:
    parent = claimed_job(store)
    child = child_of(parent)
    store.enqueue([child], conn)
    conn.commit()
    store.pause([child.id])
    store.settle([settle(parent, SUCCESS)])

    store.release()

    assert state_of(store, child) is PAUSED
    assert store.resume([child.id]) == {child.id: READY}


def test_what_was_left_to_be_linked_survives_a_link_that_fails(url: str, store: SqlStore, conn: Any) -> None:
    parent = claimed_job(store)
    child = child_of(parent)
    store.enqueue([child], conn)
    conn.commit()

    with refusing(url, "INSERT", "edges"), pytest.raises(StoreError, match="refused"):
        store.release()
    store.release()
    store.settle([settle(parent, SUCCESS)])

    assert state_of(store, child) is READY


# --- retention -----------------------------------------------------------------------------------------------


def test_edges_to_a_child_that_has_ended_are_pruned(url: str, store: SqlStore, clock: SettableClock) -> None:
    clock.jump(to=clock.now() + timedelta(days=3650))  # ids of tests are made by the real clock
    (parent,), child = family(store, if_failed=IfFailed.WAIT)
    store.settle([settle(parent, FAILURE)])
    store.cancel([child.id])
    assert len(edges(url)) == 1

    store.prune(timedelta(0))

    assert edges(url) == []


def test_edges_to_a_child_that_waits_are_not_pruned(url: str, store: SqlStore, clock: SettableClock) -> None:
    clock.jump(to=clock.now() + timedelta(days=3650))
    (parent,), child = family(store, if_failed=IfFailed.WAIT)
    store.settle([settle(parent, FAILURE)])

    store.prune(timedelta(0))

    assert len(edges(url)) == 1
    assert state_of(store, child) is BLOCKED


def test_a_child_whose_parent_was_pruned_is_cancelled_and_so_are_its_children(
    store: SqlStore, clock: SettableClock
) -> None:
    clock.jump(to=clock.now() + timedelta(days=3650))
    (parent,), child = family(store, if_failed=IfFailed.WAIT)
    grandchild = child_of(child)
    store.enqueue([grandchild])
    store.settle([settle(parent, FAILURE)])
    clock.advance("2d")

    assert store.prune(timedelta(0)) == 1
    store.release()

    assert stored(store, child.id).reason == f"its parent {parent.id} is gone"
    assert (state_of(store, child), state_of(store, grandchild)) == (CANCELLED, CANCELLED)


def test_who_follows_up_hears_of_the_end_of_an_orphan(store: SqlStore, clock: SettableClock) -> None:
    clock.jump(to=clock.now() + timedelta(days=3650))
    (parent,), child = family(store, if_failed=IfFailed.WAIT)
    store.enqueue([child_of(child)])
    store.settle([settle(parent, FAILURE)])
    clock.advance("2d")
    listener = store.listen({"@release"})
    listener.wait(0.05)

    store.prune(timedelta(0))

    assert "@release" in listener.wait(5)
    listener.close()
