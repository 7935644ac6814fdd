"""Reap: the jobs of dead sessions run again, unless they are what killed them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mainspring.errors import StoreError, StoreUnavailable
from mainspring.model import lifecycle
from mainspring.model.job import Job, JobState
from mainspring.model.lifecycle import MAX_LOSSES, Settlement, reap, settle
from mainspring.model.outcome import Succeeded
from mainspring.store import open_store
from mainspring.store.sql import SqlStore
from mainspring.store.sweep import REAP_BATCH
from mainspring.testing import SettableClock
from tests.support.factories import claimed_job, new_jobs, opened_session, stored
from tests.support.reboot import rebooted_store
from tests.support.refusal import refusing


def test_a_live_session_is_not_reaped(store: SqlStore, clock: SettableClock) -> None:
    job = claimed_job(store, opened_session(store, lease=timedelta(seconds=5)))
    clock.advance(4.999)

    assert store.reap() == 0
    assert stored(store, job.id) == job


def test_the_jobs_of_a_dead_session_are_ready_again(store: SqlStore, clock: SettableClock) -> None:
    job = claimed_job(store, opened_session(store, "host:42", timedelta(seconds=5)))
    clock.advance("5s")

    assert store.reap() == 1

    after = stored(store, job.id)
    assert (after.state, after.attempt, after.losses, after.fence) == (JobState.READY, 0, 1, 1)
    assert after.failure is not None
    assert "host:42" in after.failure.message
    assert [past.outcome for past in store.attempts(job.id)] == ["lost"]
    assert store.sessions() == []


def test_a_reaped_worker_cannot_settle(store: SqlStore, clock: SettableClock) -> None:
    job = claimed_job(store)
    clock.advance("1m")
    store.reap()

    assert store.settle([settle(job, Succeeded("1"))]) == set()

    assert stored(store, job.id).state is JobState.READY


def test_a_job_that_was_settled_in_time_is_not_lost(store: SqlStore, clock: SettableClock) -> None:
    job = claimed_job(store)
    store.settle([settle(job, Succeeded("1"))])
    clock.advance("1m")

    assert store.reap() == 0
    assert stored(store, job.id).state is JobState.SUCCEEDED


def start_suspect(store: SqlStore) -> None:
    """Claim a job that was lost before and start it, as a worker does; nothing if none is ready."""
    for job in store.claim(opened_session(store), "default", 1):
        assert store.charge(job)


def test_a_job_that_is_lost_again_before_it_has_started_is_not_to_blame(store: SqlStore, clock: SettableClock) -> None:
    job = claimed_job(store)
    for _ in range(2 * MAX_LOSSES):
        clock.advance("1m")
        store.reap()
        assert (stored(store, job.id).state, stored(store, job.id).losses) == (JobState.READY, 1)
        store.claim(opened_session(store), "default", 1)


def test_a_suspect_that_ends_well_is_cleared_of_that_loss(store: SqlStore, clock: SettableClock) -> None:
    claimed_job(store)
    clock.advance("1m")
    store.reap()
    (suspect,) = store.claim(opened_session(store), "default", 1)

    assert store.charge(suspect)
    assert store.charge(suspect), "a try whose reply was lost is repeated"
    assert stored(store, suspect.id).losses == 2
    store.settle([settle(suspect, Succeeded("1"))])

    assert stored(store, suspect.id).losses == 1
    assert not store.charge(suspect)


def test_a_job_that_kills_its_workers_is_quarantined(store: SqlStore, clock: SettableClock) -> None:
    job = claimed_job(store)
    for losses in range(1, MAX_LOSSES + 1):
        clock.advance("1m")
        store.reap()
        assert stored(store, job.id).losses == losses
        start_suspect(store)

    dead = stored(store, job.id)
    assert (dead.state, dead.outcome) == (JobState.FAILED, "lost")
    assert [past.outcome for past in store.attempts(job.id)] == ["lost"] * MAX_LOSSES


def test_what_fails_because_its_workers_died_is_in_the_history(store: SqlStore, clock: SettableClock) -> None:
    claimed_job(store, team="acme")
    for _ in range(MAX_LOSSES):
        clock.advance("1m")
        store.reap()
        start_suspect(store)

    failed = {
        team: [one.failed for one in store.history("1h", team, "default").samples] for team in ("acme", "default")
    }
    assert failed["acme"][-2:] == [0, 1]
    assert (sum(failed["acme"]), sum(failed["default"])) == (1, 0)


def test_a_replay_forgets_the_losses(store: SqlStore, clock: SettableClock) -> None:
    job = claimed_job(store)
    for _ in range(MAX_LOSSES):
        clock.advance("1m")
        store.reap()
        start_suspect(store)
    store.replay([job.id])
    store.claim(opened_session(store), "default", 1)
    clock.advance("1m")

    store.reap()

    assert (stored(store, job.id).state, stored(store, job.id).losses) == (JobState.READY, 1)


def test_a_cancel_that_was_asked_of_a_dead_worker_is_granted(store: SqlStore, clock: SettableClock) -> None:
    job = claimed_job(store)
    store.cancel([job.id], "stop")
    clock.advance("1m")

    store.reap()

    after = stored(store, job.id)
    assert (after.state, after.reason) == (JobState.CANCELLED, "stop")


def test_a_pause_that_was_asked_of_a_dead_worker_is_granted(store: SqlStore, clock: SettableClock) -> None:
    job = claimed_job(store)
    store.pause([job.id])
    clock.advance("1m")

    store.reap()

    assert stored(store, job.id).state is JobState.PAUSED


def test_more_jobs_than_one_batch_are_all_taken_back(store: SqlStore, clock: SettableClock) -> None:
    dead, alive = opened_session(store), opened_session(store, lease=timedelta(hours=1))
    store.enqueue(new_jobs(REAP_BATCH + 11))
    store.claim(dead, "default", REAP_BATCH + 1)
    store.claim(alive, "default", 10)
    clock.advance("1m")

    assert store.reap() == REAP_BATCH + 1
    assert store.counts() == {"default": {JobState.READY: REAP_BATCH + 1, JobState.RUNNING: 10}}
    assert [session.id for session in store.sessions()] == [alive]


def test_several_dead_sessions_are_reaped_in_one_call(store: SqlStore, clock: SettableClock) -> None:
    for _ in range(3):
        claimed_job(store)
    clock.advance("1m")

    assert store.reap() == 3


def test_a_jump_of_the_machines_wall_clock_costs_no_lease_on_sqlite(sqlite_url: str, clock: SettableClock) -> None:
    """On PostgreSQL a machine's clock plays no part; a SQLite file has no clock but the machine's."""
    store = open_store(sqlite_url, clock=clock)
    session = opened_session(store)
    job = claimed_job(store, session)

    clock.jump(to=datetime(2030, 1, 1, tzinfo=UTC))
    assert store.reap() == 0
    clock.jump(to=datetime(2020, 1, 1, tzinfo=UTC))
    assert store.beat(session, {job.id: job.fence}).alive
    clock.advance("15s")
    assert store.reap() == 1
    store.close()


def test_a_reboot_ends_every_lease_on_sqlite(sqlite_url: str) -> None:
    store = rebooted_store(sqlite_url)

    assert store.reap() == 1
    assert store.counts() == {"default": {JobState.READY: 1}}
    store.close()


def test_a_session_that_cannot_be_reaped_does_not_keep_the_others_from_it(
    store: SqlStore, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck, other = (claimed_job(store, opened_session(store, name)) for name in ("stuck", "other"))
    clock.advance("1m")

    def reap_other(job: Job, reason: str) -> Settlement:
        if job.id == stuck.id:
            raise StoreError("no room")
        return reap(job, reason)

    monkeypatch.setattr(lifecycle, "reap", reap_other)

    with pytest.raises(StoreError, match="no room"):
        store.reap()

    assert stored(store, stuck.id) == stuck
    assert stored(store, other.id).state is JobState.READY


def test_a_reap_that_fails_on_the_way_leaves_everything_as_it_was(
    url: str, store: SqlStore, clock: SettableClock
) -> None:
    session = opened_session(store)
    job = claimed_job(store, session)
    clock.advance("1m")

    with refusing(url, "DELETE", "sessions"), pytest.raises(StoreError, match="refused"):
        store.reap()

    assert stored(store, job.id) == job
    assert [found.id for found in store.sessions()] == [session]
    assert store.reap() == 1
    assert stored(store, job.id).losses == 1


def test_reap_gives_up_when_the_database_is_away(
    store: SqlStore, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        claimed_job(store)
    clock.advance("1m")
    tries: list[Job] = []

    def away(job: Job, reason: str) -> Settlement:
        tries.append(job)
        raise StoreUnavailable("away")

    monkeypatch.setattr(lifecycle, "reap", away)

    with pytest.raises(StoreUnavailable):
        store.reap()

    assert len(tries) == 2
