"""Workflows: jobs that are made of others, and end when those have."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest

from mainspring.errors import InvalidValue, KeyTaken, StoreError
from mainspring.model.job import IfTaken, Job, JobState, NewJob, Wish
from mainspring.model.lifecycle import settle
from mainspring.model.links import Edge, IfFailed
from mainspring.model.outcome import Cancelled, Expanded, Failed, Outcome, Succeeded
from mainspring.model.retry import Retry
from mainspring.model.schedule import Overlap
from mainspring.model.workflow import NewWorkflow, Plan, Undo, encode_plan
from mainspring.store import open_store
from mainspring.store.protocol import LetterFilter
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.databases import connected
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
    new_workflow,
    opened_session,
    state_of,
    stored,
    work_off,
)
from tests.support.refusal import refusing
from tests.support.schedules import fire, new_schedule

BLOCKED, READY, RUNNING, PAUSED = JobState.BLOCKED, JobState.READY, JobState.RUNNING, JobState.PAUSED
SUCCEEDED, FAILED, CANCELLED = JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED
MAP = Plan(gathers=True, begun=True)
HOUR = timedelta(hours=1)
ENDS: tuple[Outcome, ...] = (SUCCESS, SUCCESS, FAILURE)


def enqueued(store: SqlStore, *members: NewJob, **plan: Any) -> tuple[NewJob, ...]:
    """Store a workflow of *members*; return its job and them."""
    new = new_workflow(*members, **plan)
    assert store.enqueue_workflow(new) == new.job.id
    return new.job, *new.members


def states(store: SqlStore, *jobs: NewJob | Job) -> list[JobState]:
    found = store.get([job.id for job in jobs])
    return [found[job.id].state for job in jobs]


def parts(of: NewJob | Job, count: int, **changes: Any) -> tuple[NewJob, ...]:
    return tuple(new_job(workflow=of.id, **changes) for _ in range(count))


def expand(store: SqlStore, job: Job, *members: NewJob, plan: Plan = MAP) -> tuple[NewJob, ...]:
    """Settle the running *job* as one that has become a workflow, of two members unless they are given."""
    members = members or parts(job, 2)
    assert store.settle([settle(job, Expanded(members, encode_plan(plan)))]) == {job.id}
    return members


def settle_to_the_end(store: SqlStore) -> None:
    while store.release().followed:
        pass


def held(store: SqlStore, *jobs: NewJob) -> list[Job]:
    """Claim all that is ready, and return *jobs* of it."""
    found = claimed_jobs(store)
    return [found[job.id] for job in jobs]


# --- enqueue -------------------------------------------------------------------------------------------------


def test_a_workflow_waits_for_its_members(store: SqlStore) -> None:
    first = new_job()
    root, first, second = enqueued(store, first, child_of(first))

    assert (states(store, root, first, second), stored(store, root.id).pending) == ([BLOCKED, READY, BLOCKED], 2)
    assert [job.id for job in store.members(root.id)] == [first.id, second.id]
    assert store.member_counts([root.id]) == {root.id: {READY: 1, BLOCKED: 1}}
    assert [job.id for job in store.workflows()] == [root.id]


def test_a_workflow_succeeds_when_all_its_members_have(store: SqlStore) -> None:
    first = new_job()
    root, first, second = enqueued(store, first, child_of(first))

    assert work_off(store) == [first.id, second.id]

    assert state_of(store, root) is SUCCEEDED
    assert [job.id for job in store.workflows()] == [root.id]
    assert store.member_counts([root.id]) == {root.id: {SUCCEEDED: 2}}


def test_a_workflow_fails_when_a_member_has_and_names_it(store: SqlStore) -> None:
    root, good, bad = enqueued(store, *new_jobs(2))

    work_off(store, {bad.id: FAILURE})

    dead = stored(store, root.id)
    assert dead.state is FAILED
    assert dead.failure is not None
    assert dead.failure.message == f"1 of 2 jobs failed: greet ({bad.id}): boom"
    assert dead.failure.fingerprint
    assert state_of(store, good) is SUCCEEDED


def test_a_workflow_fails_when_a_member_has_expired_and_names_it(store: SqlStore, clock: SettableClock) -> None:
    root, late = enqueued(store, new_job(expires=HOUR))
    clock.advance("2h")
    store.expire()
    settle_to_the_end(store)

    dead = stored(store, root.id)
    assert dead.state is FAILED
    assert dead.failure is not None
    assert dead.failure.message == f"1 of 1 job failed: greet ({late.id}): {stored(store, late.id).reason}"


def test_a_workflow_goes_on_with_what_does_not_depend_on_the_failed_member(store: SqlStore) -> None:
    bad, good = new_jobs(2)
    root, bad, good, never, later = enqueued(store, bad, good, child_of(bad), child_of(good))

    work_off(store, {bad.id: FAILURE})

    assert states(store, never, later, root) == [CANCELLED, SUCCEEDED, FAILED]


def test_a_workflow_one_of_whose_members_was_cancelled_is_cancelled(store: SqlStore) -> None:
    root, one, other = enqueued(store, *new_jobs(2))
    store.cancel([one.id])

    work_off(store)

    assert (state_of(store, root), stored(store, root.id).reason) == (CANCELLED, "1 job of it cancelled")
    assert state_of(store, other) is SUCCEEDED


def test_a_workflow_whose_key_is_taken_stands_for_the_other_and_has_no_members(store: SqlStore) -> None:
    first = new_workflow(new_job(), key="nightly")
    store.enqueue_workflow(first)
    second = new_workflow(new_job(), key="nightly")

    assert store.enqueue_workflow(second) == first.job.id

    assert store.get([second.job.id, second.members[0].id]) == {}


def test_a_workflow_that_has_begun_does_not_give_way(store: SqlStore) -> None:
    """Its members have its arguments already."""
    first = new_workflow(new_job(), key="nightly")
    store.enqueue_workflow(first)
    payload = '{"args":["tomorrow"],"kwargs":{}}'

    asked = new_job(task=first.job.task, key="nightly", if_taken=IfTaken.REPLACE, payload=payload)
    assert store.enqueue([asked]) == [first.job.id]

    assert stored(store, first.job.id).payload == first.job.payload


def test_a_member_whose_key_is_taken_is_an_error_and_nothing_is_stored(store: SqlStore) -> None:
    store.enqueue([new_job(key="k")])
    new = new_workflow(new_job(), new_job(key="k"), key="other")

    with pytest.raises(KeyTaken, match="'k'"):
        store.enqueue_workflow(new)

    assert len(store.page()) == 1


def test_a_workflow_with_an_idempotency_key_has_its_members_once(store: SqlStore) -> None:
    first, again = new_workflow(new_job()), new_workflow(new_job())
    first, again = (
        NewWorkflow(msgspec.structs.replace(new.job, idempotency_key="today"), new.members) for new in (first, again)
    )

    assert [store.enqueue_workflow(new) for new in (first, again)] == [first.job.id] * 2

    assert work_off(store) == [first.members[0].id]
    assert state_of(store, first.job) is SUCCEEDED


def test_a_workflow_without_members_or_with_parents_of_its_own_is_an_error() -> None:
    """Nobody would ever end the one, and the other's members would not wait."""
    with pytest.raises(InvalidValue, match="to have members"):
        new_workflow()
    parent = new_job()
    new = new_workflow(new_job())
    with pytest.raises(InvalidValue, match="parents of a workflow"):
        NewWorkflow(msgspec.structs.replace(new.job, parents=(Edge(parent.id),)), new.members)


def test_a_job_may_wait_for_a_whole_workflow(store: SqlStore) -> None:
    root, one, other = enqueued(store, *new_jobs(2))
    child = child_of(root)
    store.enqueue([child])

    assert work_off(store) == [one.id, other.id, child.id]


def test_a_workflow_is_enqueued_in_a_callers_transaction(url: str, store: SqlStore) -> None:
    first = new_job()
    new, lost = new_workflow(first, child_of(first)), new_workflow(new_job())
    with connected(url) as conn:
        store.enqueue_workflow(lost, conn)
        conn.rollback()
        store.enqueue_workflow(new, conn)
        conn.commit()

    assert store.get([lost.job.id, lost.members[0].id]) == {}
    assert work_off(store) == [job.id for job in new.members]
    assert state_of(store, new.job) is SUCCEEDED


def test_workflows_are_listed_without_those_that_are_parts_of_others(store: SqlStore) -> None:
    first, _ = enqueued(store, new_job())
    second, inner = enqueued(store, new_job())
    (job,) = held(store, inner)
    expand(store, job)

    assert [job.id for job in store.workflows()] == [second.id, first.id]
    assert [job.id for job in store.workflows(before=second.id)] == [first.id]


# --- jobs that become workflows, and members that are added ---------------------------------------------------


def test_a_job_that_expands_ends_when_its_members_have(store: SqlStore) -> None:
    job = claimed_job(store)
    child = child_of(job)
    store.enqueue([child])

    members = expand(store, job)
    assert (state_of(store, job), stored(store, job.id).pending, state_of(store, child)) == (BLOCKED, 2, BLOCKED)

    assert work_off(store) == [*(member.id for member in members), child.id]
    assert state_of(store, job) is SUCCEEDED


def test_the_attempt_that_expanded_is_kept(store: SqlStore) -> None:
    job = claimed_job(store)
    expand(store, job)
    work_off(store)

    assert [past.outcome for past in store.attempts(job.id)] == ["expanded"]


@pytest.mark.parametrize("plan", [None, encode_plan(Plan(gathers=True))])
def test_a_job_that_expands_to_nothing_has_succeeded_with_nothing(store: SqlStore, plan: str | None) -> None:
    job = claimed_job(store, plan=plan)
    child = child_of(job)
    store.enqueue([child])

    store.settle([settle(job, Expanded((), encode_plan(MAP)))])

    assert states(store, job, child) == [SUCCEEDED, READY]
    assert store.results([job.id]) == {job.id: "[]"}


def test_a_job_that_has_become_a_workflow_does_not_expire(store: SqlStore, clock: SettableClock) -> None:
    job = claimed_job(store, expires=HOUR)
    expand(store, job)
    clock.advance("2h")

    assert store.expire().count == 0

    assert state_of(store, job) is BLOCKED


def test_a_stale_expansion_stores_no_members(store: SqlStore) -> None:
    job = claimed_job(store)
    store.settle([settle(job, SUCCESS)])
    members = parts(job, 2)

    assert store.settle([settle(job, Expanded(members, encode_plan(MAP)))]) == set()

    assert store.members(job.id) == []


def test_an_expansion_whose_member_has_a_key_that_is_taken_is_refused_whole(store: SqlStore) -> None:
    store.enqueue([new_job(key="k", queue="other")])
    job = claimed_job(store)

    with pytest.raises(KeyTaken):
        store.settle([settle(job, Expanded(parts(job, 1, key="k"), encode_plan(MAP)))])

    assert state_of(store, job) is RUNNING


def test_a_member_that_expands_keeps_its_workflow_waiting(store: SqlStore) -> None:
    root, inner, other = enqueued(store, *new_jobs(2))
    job, rest = held(store, inner, other)
    expand(store, job)

    store.settle([settle(rest, SUCCESS)])
    settle_to_the_end(store)
    assert states(store, root, inner) == [BLOCKED, BLOCKED]
    work_off(store)

    assert states(store, root, inner) == [SUCCEEDED, SUCCEEDED]


def test_members_that_a_member_adds_are_waited_for(store: SqlStore) -> None:
    root, first = enqueued(store, new_job())
    (job,) = held(store, first)
    added = parts(root, 2)

    store.settle([settle(job, Succeeded("1", added=added))])
    settle_to_the_end(store)
    assert (state_of(store, root), stored(store, root.id).pending) == (BLOCKED, 2)

    assert work_off(store) == [member.id for member in added]
    assert state_of(store, root) is SUCCEEDED


def test_members_that_several_add_at_once_are_all_waited_for(store: SqlStore) -> None:
    root, one, other = enqueued(store, *new_jobs(2))
    jobs = held(store, one, other)

    store.settle(
        [settle(job, Succeeded("1", added=parts(root, count))) for job, count in zip(jobs, (1, 2), strict=True)]
    )

    assert stored(store, root.id).pending == 3
    assert len(work_off(store)) == 3
    assert state_of(store, root) is SUCCEEDED


def test_plain_jobs_that_a_member_adds_are_not_waited_for(store: SqlStore) -> None:
    root, first = enqueued(store, new_job())
    (job,) = held(store, first)
    plain = new_job(delay=HOUR)

    store.settle([settle(job, Succeeded("1", added=(plain,)))])
    settle_to_the_end(store)

    assert states(store, root, plain) == [SUCCEEDED, JobState.SCHEDULED]


def test_an_attempt_that_fails_adds_nothing(store: SqlStore) -> None:
    root, first = enqueued(store, new_job())
    (job,) = held(store, first)
    store.settle([settle(job, Failed(FAILURE.failure), Retry(max_attempts=3))])

    assert store.settle([settle(job, Succeeded("1", added=parts(root, 1)))]) == set()

    assert len(store.members(root.id)) == 1


# --- cancel, pause, resume -----------------------------------------------------------------------------------


def test_a_workflow_that_is_cancelled_takes_its_members_with_it(store: SqlStore) -> None:
    first = new_job()
    root, first, second = enqueued(store, first, child_of(first))

    assert store.cancel([root.id], "wrong day") == {root.id: CANCELLED}

    assert states(store, first, second) == [CANCELLED, CANCELLED]
    assert stored(store, root.id).reason == stored(store, first.id).reason == "wrong day"


def test_a_workflow_that_is_cancelled_waits_for_members_that_run(store: SqlStore) -> None:
    root, one, other = enqueued(store, new_job(), new_job(delay=HOUR))
    (job,) = held(store, one)

    store.cancel([root.id], "wrong day")
    assert (states(store, root, one, other), stored(store, one.id).wish) == ([BLOCKED, RUNNING, CANCELLED], Wish.CANCEL)
    store.settle([settle(job, Cancelled("wrong day"))])
    settle_to_the_end(store)

    assert (state_of(store, root), stored(store, root.id).reason) == (CANCELLED, "wrong day")


def test_a_cancel_reaches_the_members_of_members(store: SqlStore) -> None:
    root, inner = enqueued(store, new_job())
    (job,) = held(store, inner)
    members = expand(store, job)

    assert store.cancel([root.id]) == {root.id: CANCELLED}

    assert states(store, inner, *members) == [CANCELLED] * 3


def test_members_that_come_after_a_cancel_are_cancelled_too(store: SqlStore) -> None:
    root, one, other = enqueued(store, *new_jobs(2))
    adding, expanding = held(store, one, other)
    store.cancel([root.id])
    added, members = parts(root, 1), parts(expanding, 2)

    store.settle([settle(adding, Succeeded("1", added=added))])
    store.settle([settle(expanding, Expanded(members, encode_plan(MAP)))])
    settle_to_the_end(store)

    assert states(store, *added, *members, other, root) == [CANCELLED] * 5


def test_a_job_that_is_cancelled_while_it_expands_ends_with_its_members_cancelled(store: SqlStore) -> None:
    job = claimed_job(store)
    store.cancel([job.id], "stop")

    members = expand(store, job)
    settle_to_the_end(store)

    assert states(store, job, *members) == [CANCELLED] * 3


def test_a_workflow_that_is_paused_holds_its_members_and_goes_on_when_it_is_resumed(store: SqlStore) -> None:
    first = new_job()
    root, first, second = enqueued(store, first, child_of(first))

    assert store.pause([root.id], "lunch") == {root.id: PAUSED}
    assert states(store, first, second) == [PAUSED, PAUSED]
    assert store.resume([root.id]) == {root.id: BLOCKED}

    assert work_off(store) == [first.id, second.id]
    assert state_of(store, root) is SUCCEEDED


def test_a_workflow_whose_members_end_while_it_is_paused_ends_when_it_is_resumed(store: SqlStore) -> None:
    root, one = enqueued(store, new_job())
    (job,) = held(store, one)
    store.pause([root.id])
    assert stored(store, one.id).wish is Wish.PAUSE

    store.settle([settle(job, SUCCESS)])
    settle_to_the_end(store)
    assert state_of(store, root) is PAUSED

    assert store.resume([root.id]) == {root.id: SUCCEEDED}


def test_members_that_come_while_their_workflow_is_paused_are_paused_too(store: SqlStore) -> None:
    root, one, other = enqueued(store, *new_jobs(2))
    adding, expanding = held(store, one, other)
    store.pause([root.id])
    added, members = parts(root, 1), parts(expanding, 2)

    store.settle([settle(adding, Succeeded("1", added=added))])
    store.settle([settle(expanding, Expanded(members, encode_plan(MAP)))])
    settle_to_the_end(store)
    assert states(store, *added, other, *members) == [PAUSED] * 4

    store.resume([root.id])
    work_off(store)
    assert states(store, root, other, *added, *members) == [SUCCEEDED] * 5


def test_a_job_that_is_paused_while_it_expands_holds_its_members(store: SqlStore) -> None:
    job = claimed_job(store)
    store.pause([job.id])

    members = expand(store, job)
    assert states(store, job, *members) == [PAUSED] * 3
    store.resume([job.id])
    work_off(store)

    assert state_of(store, job) is SUCCEEDED


def test_a_paused_workflow_can_be_cancelled(store: SqlStore) -> None:
    root, one = enqueued(store, new_job())
    store.pause([root.id])

    assert store.cancel([root.id], "enough") == {root.id: CANCELLED}

    assert state_of(store, one) is CANCELLED


def test_a_resume_does_not_take_back_a_cancel(store: SqlStore) -> None:
    root, one, other = enqueued(store, *new_jobs(2))
    (job,) = store.claim(opened_session(store), "default", 1)
    assert job.id == one.id
    store.pause([root.id])
    store.cancel([root.id], "enough")

    store.resume([root.id])
    late = parts(root, 1)
    store.settle([settle(job, Succeeded("1", added=late))])
    settle_to_the_end(store)

    assert states(store, root, other, *late) == [CANCELLED] * 3
    assert stored(store, root.id).reason == "enough"


# --- results -------------------------------------------------------------------------------------------------


def test_the_result_of_a_job_that_succeeded_is_what_it_returned(store: SqlStore) -> None:
    good, bad = claimed_job(store), claimed_job(store)
    store.settle([settle(good, Succeeded('{"n":1}')), settle(bad, FAILURE)])

    assert store.results([good.id, bad.id, new_id()]) == {good.id: '{"n":1}'}
    assert store.results([]) == {}


def test_a_map_gathers_what_its_members_returned_in_the_order_of_their_ids(store: SqlStore) -> None:
    job = claimed_job(store)
    one, two, three = expand(store, job, *parts(job, 3))
    first, second, third = held(store, one, two, three)

    store.settle([settle(third, Succeeded("3"))])
    store.settle([settle(first, Succeeded('"a"')), settle(second, Succeeded("null"))])
    settle_to_the_end(store)

    assert store.results([job.id]) == {job.id: '["a",null,3]'}


def test_a_workflow_has_the_result_of_its_output(store: SqlStore) -> None:
    first = new_job()
    last = child_of(first)
    root, first, last = enqueued(store, first, last, output=last.id)

    work_off(store, {first.id: Succeeded('"no"'), last.id: Succeeded('"yes"')})

    assert store.results([root.id]) == {root.id: '"yes"'}


def test_a_workflow_without_an_output_has_no_result_and_one_that_failed_none_at_all(store: SqlStore) -> None:
    good, _ = enqueued(store, new_job())
    bad, member = enqueued(store, new_job())

    work_off(store, {member.id: FAILURE})

    assert store.results([good.id, bad.id]) == {good.id: "null"}


def test_results_are_followed_through_workflows_in_workflows(store: SqlStore) -> None:
    inner = new_job()
    root, inner = enqueued(store, inner, output=inner.id)
    (job,) = held(store, inner)
    plain, deeper = expand(store, job)
    first, second = held(store, plain, deeper)
    store.settle([settle(first, Succeeded('"plain"'))])
    members = expand(store, second)

    work_off(store, {members[0].id: Succeeded("[]"), members[1].id: Succeeded("2")})

    assert store.results([root.id]) == {root.id: '["plain",[[],2]]'}


# --- undo ----------------------------------------------------------------------------------------------------


def saga(store: SqlStore, count: int = 3) -> tuple[NewJob, list[NewJob], dict[UUID, NewJob]]:
    """Store a workflow of jobs in a row, each of which has one that undoes it; return it, them, and those."""
    root, members = new_id(), [new_job()]
    while len(members) < count:
        members.append(child_of(members[-1]))
    undo = {member.id: new_job(task=f"undo_{n}", workflow=root) for n, member in enumerate(members)}
    new = new_workflow(*members, root=root, undo=tuple(Undo(member, job) for member, job in undo.items()))
    store.enqueue_workflow(new)
    return new.job, list(new.members), undo


def undone(store: SqlStore, root: NewJob) -> list[tuple[str, JobState]]:
    return [(job.task, job.state) for job in store.members(root.id) if job.task.startswith("undo")]


def test_what_was_done_is_undone_when_the_workflow_fails_the_last_first(store: SqlStore) -> None:
    root, members, _ = saga(store)

    order = work_off(store, {members[2].id: FAILURE})

    tasks = [stored(store, job_id).task for job_id in order]
    assert tasks == ["greet", "greet", "greet", "undo_1", "undo_0"]
    assert state_of(store, root) is FAILED


def test_what_is_done_at_the_same_time_is_undone_in_reverse_order_of_finishing(
    store: SqlStore, clock: SettableClock
) -> None:
    root, members = new_id(), new_jobs(3)
    undo = tuple(Undo(member.id, new_job(task=f"undo_{n}", workflow=root)) for n, member in enumerate(members))
    new = new_workflow(*members, root=root, undo=undo)
    store.enqueue_workflow(new)
    one, two, three = held(store, *new.members)

    for job in (two, one):
        store.settle([settle(job, SUCCESS)])
        clock.advance("1s")
    store.settle([settle(three, FAILURE)])
    order = work_off(store)

    assert [stored(store, job_id).task for job_id in order] == ["undo_0", "undo_1"]


def test_an_undo_that_fails_does_not_keep_the_others_from_running(store: SqlStore) -> None:
    root, members, undo = saga(store)
    outcomes = {members[2].id: FAILURE} | {job.id: FAILURE for job in undo.values()}

    work_off(store, outcomes)

    assert undone(store, root) == [("undo_1", FAILED), ("undo_0", FAILED)]
    assert state_of(store, root) is FAILED


def test_a_workflow_does_not_end_before_all_is_undone(store: SqlStore) -> None:
    root, members, _ = saga(store)
    for member, outcome in zip(members, ENDS, strict=True):
        end(store, member, outcome)
    settle_to_the_end(store)

    for left in (2, 1):
        assert (state_of(store, root), stored(store, root.id).pending) == (BLOCKED, left)
        (job,) = claimed_jobs(store).values()
        store.settle([settle(job, SUCCESS)])
        settle_to_the_end(store)

    assert state_of(store, root) is FAILED


def test_nothing_is_undone_when_the_workflow_succeeds(store: SqlStore) -> None:
    root, _, _ = saga(store)

    work_off(store)

    assert (state_of(store, root), undone(store, root)) == (SUCCEEDED, [])


def test_nothing_is_undone_when_nothing_was_done(store: SqlStore) -> None:
    root, members, _ = saga(store)

    work_off(store, {members[0].id: FAILURE})

    assert (state_of(store, root), undone(store, root)) == (FAILED, [])


def test_what_was_done_is_undone_when_the_workflow_is_cancelled(store: SqlStore) -> None:
    root, members, _ = saga(store)
    end(store, members[0])

    store.cancel([root.id], "changed my mind")
    assert (state_of(store, root), undone(store, root)) == (BLOCKED, [("undo_0", READY)])
    work_off(store)

    assert (state_of(store, root), undone(store, root)) == (CANCELLED, [("undo_0", SUCCEEDED)])
    assert stored(store, root.id).reason == "changed my mind"


def test_a_second_cancel_does_not_keep_what_was_done_from_being_undone(store: SqlStore) -> None:
    root, members, _ = saga(store)
    end(store, members[0])
    store.cancel([root.id])

    store.cancel([root.id])
    work_off(store)

    assert (state_of(store, root), undone(store, root)) == (CANCELLED, [("undo_0", SUCCEEDED)])


def test_a_workflow_that_was_undone_is_not_replayed_and_nor_are_its_members(store: SqlStore) -> None:
    root, members, _ = saga(store)
    work_off(store, {members[2].id: FAILURE})

    assert store.replay([root.id]) == {root.id: FAILED}
    assert store.replay([members[2].id]) == {members[2].id: FAILED}

    assert work_off(store) == []


def test_a_member_is_not_replayed_while_its_workflow_is_being_undone(store: SqlStore) -> None:
    root, members, _ = saga(store)
    for member, outcome in zip(members, ENDS, strict=True):
        end(store, member, outcome)
    settle_to_the_end(store)
    assert undone(store, root) == [("undo_1", READY), ("undo_0", BLOCKED)]

    assert store.replay([members[2].id]) == {members[2].id: FAILED}

    work_off(store)
    assert state_of(store, root) is FAILED


# --- replay --------------------------------------------------------------------------------------------------


def test_a_replayed_workflow_goes_on_from_what_failed(store: SqlStore) -> None:
    first, second = new_job(), new_job()
    root, first, bad, last = enqueued(store, first, second, child_of(first, second))
    work_off(store, {bad.id: FAILURE})
    assert states(store, root, last) == [FAILED, CANCELLED]

    assert store.replay([root.id], "fixed") == {root.id: BLOCKED}

    assert work_off(store) == [bad.id, last.id]
    assert state_of(store, root) is SUCCEEDED


def test_a_replayed_workflow_may_fail_again(store: SqlStore) -> None:
    root, good, bad = enqueued(store, *new_jobs(2))
    work_off(store, {bad.id: FAILURE})
    store.replay([root.id])

    assert work_off(store, {bad.id: FAILURE}) == [bad.id]

    assert states(store, root, good) == [FAILED, SUCCEEDED]


def test_a_replay_goes_down_to_the_members_of_members(store: SqlStore) -> None:
    root, inner = enqueued(store, new_job())
    (job,) = held(store, inner)
    good, bad = expand(store, job)
    work_off(store, {bad.id: FAILURE})
    assert states(store, root, inner) == [FAILED, FAILED]

    store.replay([root.id])

    assert work_off(store) == [bad.id]
    assert states(store, root, inner, good) == [SUCCEEDED] * 3


def test_a_replayed_member_brings_back_its_workflows_and_what_was_cancelled_after_it(store: SqlStore) -> None:
    inner = new_job()
    root, inner, last = enqueued(store, inner, child_of(inner))
    (job,) = held(store, inner)
    _, bad = expand(store, job)
    work_off(store, {bad.id: FAILURE})
    assert states(store, root, inner, last) == [FAILED, FAILED, CANCELLED]

    assert store.replay([bad.id]) == {bad.id: READY}

    assert states(store, root, inner, last) == [BLOCKED] * 3
    assert work_off(store) == [bad.id, last.id]
    assert states(store, root, inner) == [SUCCEEDED, SUCCEEDED]


def test_a_replayed_member_does_not_bring_back_others_that_failed(store: SqlStore) -> None:
    root, one, other = enqueued(store, *new_jobs(2))
    work_off(store, {one.id: FAILURE, other.id: FAILURE})

    store.replay([one.id])

    assert work_off(store) == [one.id]
    assert states(store, root, one, other) == [FAILED, SUCCEEDED, FAILED]


def test_a_replayed_member_does_not_bring_back_what_ran_after_it_and_failed(store: SqlStore) -> None:
    """Only what was cancelled because of it depends on it; the other had its chance."""
    first = new_job()
    root, first, after = enqueued(store, first, child_of(first, if_failed=IfFailed.RUN))
    work_off(store, {first.id: FAILURE, after.id: FAILURE})

    store.replay([first.id])

    assert work_off(store) == [first.id]
    assert states(store, root, first, after) == [FAILED, SUCCEEDED, FAILED]


def test_a_replayed_workflow_none_of_whose_members_can_live_again_ends_again(store: SqlStore) -> None:
    root, bad = enqueued(store, new_job(key="k"))
    work_off(store, {bad.id: FAILURE})
    store.enqueue([new_job(key="k", queue="other")])

    assert store.replay([root.id]) == {root.id: FAILED}

    assert state_of(store, bad) is FAILED


def test_a_dead_letter_that_is_replayed_brings_back_its_workflow(store: SqlStore) -> None:
    root, bad = enqueued(store, new_job())
    work_off(store, {bad.id: FAILURE})
    letters = store.dead_letters(LetterFilter(task="greet"))

    assert store.replay_letters(letters) == {bad.id}

    work_off(store)
    assert states(store, root, bad) == [SUCCEEDED, SUCCEEDED]


def test_a_member_that_is_replayed_while_its_workflow_lives_is_waited_for(store: SqlStore) -> None:
    root, bad, other = enqueued(store, new_job(), new_job(delay=HOUR))
    end(store, bad, FAILURE)

    store.replay([bad.id])
    assert stored(store, root.id).pending == 2
    end(store, bad)
    store.cancel([other.id])

    assert state_of(store, root) is CANCELLED


def test_a_member_that_expired_and_is_replayed_before_its_workflow_knew_is_counted_once(
    store: SqlStore, clock: SettableClock
) -> None:
    root, member, other = enqueued(store, new_job(expires=HOUR), new_job())
    clock.advance("2h")
    store.expire()

    store.replay([member.id])

    work_off(store)
    assert states(store, root, member, other) == [SUCCEEDED] * 3


# --- schedules -----------------------------------------------------------------------------------------------


def test_a_workflow_that_a_schedule_made_overlaps_with_its_next_tick_until_it_has_ended(
    store: SqlStore, clock: SettableClock
) -> None:
    store.put_schedules([new_schedule(overlap=Overlap.SKIP)])
    clock.advance("1m")
    assert fire(store).jobs == 1
    (job,) = claimed_jobs(store).values()
    members = expand(store, job)

    clock.advance("1m")
    assert fire(store).jobs == 0
    assert work_off(store) == [member.id for member in members]
    clock.advance("1m")

    assert fire(store).jobs == 1


# --- retention -----------------------------------------------------------------------------------------------


def finished(store: SqlStore, *jobs: NewJob | Job) -> set[UUID]:
    return {job.id for job in jobs} & store.get([job.id for job in jobs]).keys()


def test_members_are_kept_for_as_long_as_their_workflow_lives(store: SqlStore, clock: SettableClock) -> None:
    root, done, late = enqueued(store, new_job(), new_job(delay=timedelta(days=30)))
    end(store, done)
    clock.advance("20d")

    assert store.prune(timedelta(days=2)) == 0

    assert finished(store, root, done, late) == {root.id, done.id, late.id}
    assert store.member_counts([root.id]) == {root.id: {SUCCEEDED: 1, JobState.SCHEDULED: 1}}


def test_members_are_kept_for_as_long_as_their_workflow_is(store: SqlStore, clock: SettableClock) -> None:
    root, done, late = enqueued(store, new_job(), new_job(delay=timedelta(days=5)))
    end(store, done)
    clock.advance("6d")
    work_off(store)

    clock.advance("1d")
    assert store.prune(timedelta(days=2)) == 0
    assert len(finished(store, root, done, late)) == 3
    clock.advance("5d")
    assert store.prune(timedelta(days=2)) == 3

    assert finished(store, root, done, late) == set()


def test_a_workflow_goes_with_its_members_that_ended_on_the_same_day(store: SqlStore, clock: SettableClock) -> None:
    enqueued(store, *new_jobs(3))
    work_off(store)
    clock.advance("4d")

    assert store.prune(timedelta(days=2)) == 4

    assert store.page() == []


def test_a_workflow_that_is_old_goes_with_its_members_that_are_older(store: SqlStore, clock: SettableClock) -> None:
    _, early, _ = enqueued(store, new_job(), new_job(delay=timedelta(days=1)))
    end(store, early)
    clock.advance("1d")
    work_off(store)
    clock.advance("9d")

    assert store.prune(timedelta(days=2)) == 3

    assert store.page() == []


def test_members_of_members_are_kept_with_the_workflow_at_the_top(store: SqlStore, clock: SettableClock) -> None:
    root, inner, last = enqueued(store, new_job(), new_job(delay=timedelta(days=10)))
    (job,) = held(store, inner)
    one, other = expand(store, job, *parts(job, 1), *parts(job, 1, delay=timedelta(days=1)))
    work_off(store)
    clock.advance("1d")
    work_off(store)
    assert state_of(store, inner) is SUCCEEDED
    clock.advance("8d")

    assert store.prune(timedelta(days=2)) == 0
    clock.advance("1d")
    work_off(store)
    assert store.prune(timedelta(days=2)) == 0

    family = (root, inner, last, one, other)
    assert len(finished(store, *family)) == 5
    clock.advance("4d")
    assert store.prune(timedelta(days=2)) == 5
    assert store.page() == []


def test_results_of_members_that_ended_long_before_are_still_gathered(store: SqlStore, clock: SettableClock) -> None:
    job = claimed_job(store, opened_session(store, lease=timedelta(days=9)))
    one, other = expand(store, job, *parts(job, 1), *parts(job, 1, delay=timedelta(days=5)))
    end(store, one, Succeeded('"early"'))
    clock.advance("6d")
    store.prune(timedelta(days=1))
    store.promote()
    end(store, other, Succeeded('"late"'))
    settle_to_the_end(store)

    assert store.results([job.id]) == {job.id: '["early","late"]'}


# --- crashes -------------------------------------------------------------------------------------------------


def test_the_end_of_a_workflow_is_not_lost_by_a_crash_before_it_was_followed_up(url: str, store: SqlStore) -> None:
    root, one = enqueued(store, new_job())
    end(store, one)  # and nobody calls release

    assert state_of(store, root) is BLOCKED
    with refusing(url, "INSERT", "jobs_done"), pytest.raises(StoreError, match="refused"):
        store.release()  # killed in the midst of it
    assert state_of(store, root) is BLOCKED
    store.release()

    assert state_of(store, root) is SUCCEEDED


def test_a_cancel_is_not_lost_by_a_crash_on_the_way_down(url: str, store: SqlStore) -> None:
    parent = new_job()
    child = child_of(parent)
    cleanup = child_of(child, if_failed=IfFailed.RUN)
    root, parent, child, cleanup = enqueued(store, parent, child, cleanup)

    unlucky = f"NEW.id = '{child.id}'"
    with refusing(url, "INSERT", "jobs_done", unlucky):
        store.cancel([parent.id])
    assert states(store, parent, child) == [CANCELLED, BLOCKED]

    assert work_off(store) == [cleanup.id]
    assert states(store, child, root) == [CANCELLED, CANCELLED]


def test_an_undo_is_not_begun_twice_by_a_crash_halfway(url: str, store: SqlStore) -> None:
    root, members, _ = saga(store)
    for member, outcome in zip(members, ENDS, strict=True):
        end(store, member, outcome)

    with refusing(url, "INSERT", "edges"), pytest.raises(StoreError, match="refused"):
        store.release()
    assert undone(store, root) == []
    work_off(store)

    assert undone(store, root) == [("undo_1", SUCCEEDED), ("undo_0", SUCCEEDED)]


def test_follow_ups_of_a_node_that_died_are_done_by_another(url: str, store: SqlStore, clock: SettableClock) -> None:
    root, one = enqueued(store, new_job())
    end(store, one)
    store.close()

    other = open_store(url, clock=clock)
    other.release()

    assert state_of(other, root) is SUCCEEDED
    other.close()
