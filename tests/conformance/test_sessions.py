"""Worker sessions: a lease for all that a worker holds, and agreement about what that is."""

from __future__ import annotations

from datetime import timedelta

from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Returned, Succeeded
from mainspring.model.session import NewSession
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.factories import claimed_job, new_id, new_job, opened_session
from tests.support.reboot import rebooted_store


def test_an_open_session_is_listed_and_alive(store: SqlStore, clock: SettableClock) -> None:
    session = opened_session(store, "host:42", timedelta(seconds=7))

    (found,) = store.sessions()

    assert (found.id, found.name, found.lease, found.alive) == (session, "host:42", timedelta(seconds=7), True)
    assert found.started_at == found.beat_at == clock.now()


def test_a_beat_renews_the_lease(store: SqlStore, clock: SettableClock) -> None:
    session = opened_session(store, lease=timedelta(seconds=5))
    for _ in range(4):
        clock.advance("4s")
        assert store.beat(session, {}).alive

    assert store.sessions()[0].alive
    assert store.sessions()[0].beat_at == clock.now()
    assert store.reap() == 0


def test_a_lease_that_has_ended_is_not_revived(store: SqlStore, clock: SettableClock) -> None:
    session = opened_session(store, lease=timedelta(seconds=5))
    job = claimed_job(store, session)
    clock.advance("5s")

    beat = store.beat(session, {job.id: job.fence})

    assert not beat.alive
    assert beat.lost == {job.id: job.fence}
    assert not store.sessions()[0].alive


def test_a_lease_from_before_a_reboot_is_dead_on_sqlite(sqlite_url: str) -> None:
    """It is on a clock that began anew, and seems to end later than any lease that was given since."""
    store = rebooted_store(sqlite_url)

    (session,) = store.sessions()

    assert not session.alive
    assert not store.beat(session.id, {}).alive
    store.close()


def test_an_unknown_session_is_told_so(store: SqlStore) -> None:
    assert not store.beat(new_id(), {}).alive


def test_a_beat_agrees_when_both_sides_do(store: SqlStore) -> None:
    session = opened_session(store)
    job = claimed_job(store, session)

    beat = store.beat(session, {job.id: job.fence})

    assert (beat.alive, dict(beat.strays), dict(beat.lost), dict(beat.wishes)) == (True, {}, {}, {})


def test_a_beat_names_jobs_whose_claim_was_never_heard(store: SqlStore) -> None:
    session = opened_session(store)
    job = claimed_job(store, session)

    beat = store.beat(session, {})

    assert beat.strays == {job.id: job.fence}
    stray = store.get(beat.strays)[job.id]
    assert store.settle([settle(stray, Returned())]) == {job.id}


def test_a_beat_names_jobs_that_the_session_no_longer_holds(store: SqlStore) -> None:
    session = opened_session(store)
    job = claimed_job(store, session)
    store.settle([settle(job, Succeeded("1"))])

    assert store.beat(session, {job.id: job.fence}).lost == {job.id: job.fence}


def test_a_beat_tells_an_old_hold_from_a_new_one_by_its_fence(store: SqlStore) -> None:
    session = opened_session(store)
    old = claimed_job(store, session)
    store.settle([settle(old, Returned())])
    (new,) = store.claim(session, "default", 1)

    beat = store.beat(session, {old.id: old.fence})

    assert beat.lost == {old.id: old.fence}
    assert beat.strays == {new.id: new.fence}


def test_a_session_that_holds_nothing_can_be_closed(store: SqlStore) -> None:
    session = opened_session(store)

    assert store.close_session(session)

    assert store.sessions() == []
    store.enqueue([new_job()])
    assert store.claim(session, "default", 1) == []


def test_a_session_that_still_holds_a_job_is_left_to_reap(store: SqlStore, clock: SettableClock) -> None:
    session = opened_session(store)
    claimed_job(store, session)

    assert not store.close_session(session)

    clock.advance("1m")
    assert store.reap() == 1


def test_opening_a_session_twice_is_opening_it_once(store: SqlStore) -> None:
    """The reply to the first try may have been lost."""
    session = opened_session(store)
    (found,) = store.sessions()

    store.open_session(NewSession(id=session, name=found.name, lease=found.lease))

    assert store.sessions() == [found]


def test_an_attempt_tells_its_worker_by_name_for_as_long_as_it_is_kept(store: SqlStore, clock: SettableClock) -> None:
    session = opened_session(store, "host:42")
    running, done, again = (claimed_job(store, session) for _ in range(3))
    store.settle([settle(done, Succeeded("1")), settle(again, Returned())])
    clock.advance("3s")

    def names() -> list[str | None]:
        return [attempt.worker for job in (running, done) for attempt in store.attempts(job.id)]

    assert names() == ["host:42", "host:42"]
    store.settle([settle(running, Succeeded("1"))])
    assert store.attempts(running.id)[0].duration == timedelta(seconds=3)
    assert store.close_session(session)
    assert names() == ["host:42", "host:42"]
    store.prune(timedelta(days=1))
    assert names() == ["host:42", "host:42"]


def test_the_name_of_a_worker_that_died_stays_too(store: SqlStore, clock: SettableClock) -> None:
    session = opened_session(store, "host:42", timedelta(seconds=5))
    job = claimed_job(store, session)
    clock.advance("5s")

    assert store.reap() == 1

    assert store.sessions() == []
    assert [(attempt.outcome, attempt.worker) for attempt in store.attempts(job.id)] == [("lost", "host:42")]


def test_the_names_of_workers_stay_a_year_whatever_age_is_asked_for(store: SqlStore, clock: SettableClock) -> None:
    """Some attempts outlive it, as those of a long workflow do."""
    sessions = [opened_session(store, "host:42") for _ in range(3)]

    assert store.close_session(sessions[0])
    clock.advance("399d")
    store.prune(timedelta(days=1))
    clock.advance("2d")
    store.prune(timedelta(days=500))
    assert store.close_session(sessions[1])
    assert store._db.run("prune_sessions", age=timedelta(days=400), limit=10) == [(1,)]

    assert store.close_session(sessions[2])
    store.prune(timedelta(days=1))
    assert store._db.run("prune_sessions", age=timedelta(seconds=-1), limit=10) == [(2,)]
