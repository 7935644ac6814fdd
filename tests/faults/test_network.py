"""The network between a node and PostgreSQL fails in every way it can; nothing is lost, doubled or stuck."""

from __future__ import annotations

import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from msgspec.structs import replace

from mainspring.errors import StoreUnavailable
from mainspring.model.audit import Entry
from mainspring.model.breaker import Breaker
from mainspring.model.failure import Failure
from mainspring.model.job import IfTaken, Job, JobState
from mainspring.model.journal import LogLine, Progress, Reached
from mainspring.model.lifecycle import settle
from mainspring.model.limits import Limit, want_of
from mainspring.model.outcome import Failed, Lost, Returned, Succeeded
from mainspring.model.retry import Retry
from mainspring.model.token import NewToken, Role
from mainspring.model.trigger import every
from mainspring.store import open_store
from mainspring.store.database import Row, Runner
from mainspring.store.postgres import wake
from mainspring.store.postgres.connections import DeadlineConnection
from mainspring.store.postgres.database import _CONNECTIONS, PostgresDatabase
from mainspring.store.protocol import LetterFilter
from mainspring.store.sql import SqlStore
from mainspring.tally import Counts
from tests.support.factories import (
    child_of,
    claimed_job,
    new_job,
    new_jobs,
    new_workflow,
    opened_session,
    stored,
    work_off,
)
from tests.support.notices import events, notifications, telling
from tests.support.postgres import PostgresServer, database, url_in
from tests.support.proxy import FaultyProxy, TransactionPooler
from tests.support.schedules import fire, new_schedule
from tests.support.waiting import at_work, until


@pytest.fixture
def name(own_server: PostgresServer) -> Iterator[str]:
    """A database on our own server, which the proxies know how to reach."""
    name = f"faults_{uuid.uuid4().hex}"
    with database(own_server.url(), name) as url:
        open_store(url).close()
        yield name


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where a proxy has its socket. The path of a socket must be short, and the folder of a test is not."""
    with tempfile.TemporaryDirectory(dir="/tmp") as found:
        yield Path(found)


@pytest.fixture
def proxy(folder: Path, own_server: PostgresServer) -> Iterator[FaultyProxy]:
    found = FaultyProxy(folder, own_server.folder)
    yield found
    found.close()


@pytest.fixture
def remote(proxy: FaultyProxy, folder: Path, name: str) -> Iterator[SqlStore]:
    """A store behind the proxy, with little patience."""
    found = SqlStore(PostgresDatabase(url_in(folder, name), patience=0.5, deadline=5))
    yield found
    found.close()


@pytest.fixture
def local(own_server: PostgresServer, name: str) -> Iterator[SqlStore]:
    """A store that sees what really is in the database."""
    found = open_store(own_server.url(name))
    yield found
    found.close()


def test_an_enqueue_whose_reply_is_lost_stores_its_jobs_once(
    proxy: FaultyProxy, remote: SqlStore, local: SqlStore
) -> None:
    jobs = [*new_jobs(3), new_job(key="k")]
    proxy.lose_reply_to(b"INSERT INTO mainspring.jobs")

    assert remote.enqueue(jobs) == [job.id for job in jobs]

    assert local.counts() == {"default": {JobState.READY: 4}}


def test_an_enqueue_that_is_never_answered_says_that_it_may_be_stored(
    proxy: FaultyProxy, remote: SqlStore, local: SqlStore
) -> None:
    def refuse() -> object:
        raise psycopg.OperationalError("connection refused")

    proxy.lose_reply_to(b"INSERT INTO mainspring.jobs")
    remote._db._connections._open = refuse  # type: ignore[attr-defined]
    remote._db._deadline = 0.2  # type: ignore[attr-defined]

    with pytest.raises(StoreUnavailable, match="may have been written before the server was lost"):
        remote.enqueue([new_job()])
    with pytest.raises(StoreUnavailable, match=r"is it running there\? \(connection refused\)$"):
        remote.counts()

    assert local.counts() == {"default": {JobState.READY: 1}}


def test_an_enqueue_whose_reply_is_lost_does_not_run_a_finished_job_again(
    proxy: FaultyProxy, remote: SqlStore, local: SqlStore
) -> None:
    """Between the lost reply and the next try another node runs the job to its end."""
    job = new_job()
    proxy.lose_reply_to(b"INSERT INTO mainspring.jobs")
    session = opened_session(local)
    connect = remote._db._connections._open  # type: ignore[attr-defined]

    def finish_then_connect() -> object:
        for claimed in local.claim(session, "default", 1):
            local.settle([settle(claimed, Succeeded("1"))])
        return connect()

    remote._db._connections._open = finish_then_connect  # type: ignore[attr-defined]

    assert remote.enqueue([job]) == [job.id]

    assert stored(local, job.id).state is JobState.SUCCEEDED
    assert local.counts() == {}


@pytest.mark.parametrize("outcome", [Succeeded("1"), Returned()])
def test_a_settle_whose_reply_is_lost_is_not_taken_for_stale(
    proxy: FaultyProxy, remote: SqlStore, local: SqlStore, outcome: Succeeded | Returned
) -> None:
    job = claimed_job(remote)
    proxy.lose_reply_to(b"INSERT INTO mainspring.jobs_done" if isinstance(outcome, Succeeded) else b"COMMIT\0")

    assert remote.settle([settle(job, outcome)]) == {job.id}

    expected = JobState.SUCCEEDED if isinstance(outcome, Succeeded) else JobState.READY
    assert stored(local, job.id).state is expected
    assert len(local.attempts(job.id)) == 1


def test_a_step_whose_reply_is_lost_is_recorded_once_and_is_not_taken_for_stale(
    proxy: FaultyProxy, remote: SqlStore, local: SqlStore
) -> None:
    job = claimed_job(remote)
    proxy.lose_reply_to(b"INSERT INTO mainspring.steps")

    remote.record_step(job.id, job.fence, "charge", "1")

    assert [(step.name, step.result) for step in local.steps(job.id)] == [("charge", "1")]


def test_a_sleep_whose_reply_is_lost_ends_when_its_first_try_said(
    proxy: FaultyProxy, remote: SqlStore, local: SqlStore
) -> None:
    job, hour = claimed_job(remote), timedelta(hours=1)
    proxy.lose_reply_to(b"INSERT INTO mainspring.steps")

    left = remote.begin_sleep(job.id, job.fence, "@sleep 1h", hour)

    (step,) = local.steps(job.id)
    assert step.until == step.at + hour
    assert timedelta(0) < left < hour


def test_a_signal_whose_reply_is_lost_is_kept_once_though_it_was_taken_and_its_job_has_ended_meanwhile(
    proxy: FaultyProxy, remote: SqlStore, local: SqlStore
) -> None:
    job = claimed_job(remote)
    proxy.lose_reply_to(b"COMMIT\0")
    connect = remote._db._connections._open  # type: ignore[attr-defined]

    def finish_then_connect() -> object:
        if stored(local, job.id).state is JobState.RUNNING:
            assert local.take_signal(job.id, job.fence, "@signal go", "go", None) == "7"
            assert local.take_signal(job.id, job.fence, "@signal go 2", "go", timedelta(0)) == "null"
            local.settle([settle(job, Succeeded("1"))])
        return connect()

    remote._db._connections._open = finish_then_connect  # type: ignore[attr-defined]

    remote.signal(job.id, "go", "7", uuid.uuid4())

    assert stored(local, job.id).state is JobState.SUCCEEDED


def test_counts_whose_reply_is_lost_are_added_once(proxy: FaultyProxy, remote: SqlStore, local: SqlStore) -> None:
    counts = Counts()
    counts.succeeded = 3
    proxy.lose_reply_to(b"COMMIT\0")

    remote.add_counts({(None, "mail"): counts})

    assert sum(one.succeeded for one in local.history("1h").samples) == 3


def test_a_signal_that_was_taken_unheard_of_is_not_taken_for_another(
    proxy: FaultyProxy, remote: SqlStore, local: SqlStore
) -> None:
    job = claimed_job(remote)
    for value in ("1", "2"):
        local.signal(job.id, "go", value, uuid.uuid4())
    proxy.lose_reply_to(b"COMMIT\0")

    assert remote.take_signal(job.id, job.fence, "@signal go", "go", None) == "1"
    assert remote.take_signal(job.id, job.fence, "@signal go 2", "go", None) == "2"


def test_a_settle_whose_reply_is_lost_counts_once_for_its_breaker_and_is_not_taken_for_stale(
    proxy: FaultyProxy, remote: SqlStore, local: SqlStore
) -> None:
    breaker = want_of(Breaker("b", open_at="50% of 4 in 1m"), {})
    failed = Failed(Failure(type="ConnectionError", message="refused"))
    for expected in (1, 2):
        job = replace(claimed_job(remote), breaker=breaker)
        remote.release()  # so that what is lost is the reply to the settle
        proxy.lose_reply_to(b"COMMIT\0")
        assert remote.settle([settle(job, failed, Retry(base="1h", cap="1h"))]) == {job.id}
        assert local.breakers("b")[0].failures == expected
    late = replace(claimed_job(remote), breaker=breaker)
    proxy.lose_reply_to(b"COMMIT\0")

    settled = remote.settle([settle(late, failed)])  # it has no attempt left, and is spared

    assert (settled, settled.otherwise[late.id].state) == ({late.id}, JobState.BLOCKED)
    assert (stored(local, late.id).state, stored(local, late.id).attempt) == (JobState.BLOCKED, 0)
    assert [attempt.outcome for attempt in local.attempts(late.id)] == ["spared"]


def test_a_record_whose_reply_is_lost_keeps_each_line_once(
    proxy: FaultyProxy, remote: SqlStore, local: SqlStore
) -> None:
    job = claimed_job(remote)
    lines = [LogLine(job.id, job.fence, number, "INFO", "hello") for number in (1, 2)]
    proxy.lose_reply_to(b"COMMIT\0")

    assert remote.record(lines, [Progress(job.id, job.fence, 1, 2)]) == {job.id}

    assert [line.number for line in local.logs(job.id)] == [1, 2]
    assert stored(local, job.id).reached == Reached(1, 2)


def test_a_transaction_whose_commit_is_not_answered_is_said_to_be_in_doubt(
    proxy: FaultyProxy, remote: SqlStore, local: SqlStore
) -> None:
    job = claimed_job(remote)

    with pytest.raises(StoreUnavailable, match="while it committed, so whether the job is settled is not known"):
        with remote.transaction(lambda: settle(job, Succeeded("1"))):
            proxy.lose_reply_to(b"COMMIT\0")

    assert stored(local, job.id).state is JobState.SUCCEEDED
    assert remote.settle([settle(job, Succeeded("2"))]) == set()


def test_a_transaction_that_is_cut_off_before_its_commit_keeps_nothing(
    proxy: FaultyProxy, remote: SqlStore, local: SqlStore
) -> None:
    job = claimed_job(remote)

    with pytest.raises(StoreUnavailable, match=r"did not answer in time|can.t reach PostgreSQL"):
        with remote.transaction(lambda: settle(job, Succeeded("1"))):
            proxy.fall_silent()
    proxy.heal()

    assert stored(local, job.id).state is JobState.RUNNING
    assert remote.settle([settle(job, Succeeded("1"))]) == {job.id}


def test_a_transaction_outlives_a_broken_connection_before_its_block(proxy: FaultyProxy, remote: SqlStore) -> None:
    job = claimed_job(remote)
    proxy.hang_up()

    with remote.transaction(lambda: settle(job, Succeeded("1"))) as connection:
        connection.execute("SELECT 1")

    assert stored(remote, job.id).state is JobState.SUCCEEDED


@pytest.mark.parametrize("outcome", [Succeeded("1"), Returned()])
def test_a_settle_that_comes_too_late_is_not_taken_for_one_whose_reply_was_lost(
    proxy: FaultyProxy, remote: SqlStore, local: SqlStore, outcome: Succeeded | Returned
) -> None:
    """Nothing of it arrived. The history has an attempt with this outcome or under this fence, but none with both."""
    session = opened_session(local)
    first = claimed_job(local, session)
    local.settle([settle(first, Returned())])
    (job,) = local.claim(session, "default", 1)
    local.settle([settle(job, Lost("it was silent for too long"))])
    proxy.hang_up()

    assert remote.settle([settle(job, outcome)]) == set()

    assert [past.outcome for past in local.attempts(job.id)] == ["returned", "lost"]


def test_a_claim_whose_reply_is_lost_shows_as_a_stray(proxy: FaultyProxy, remote: SqlStore, local: SqlStore) -> None:
    session = opened_session(remote)
    (job,) = new_jobs(1)
    remote.enqueue([job])
    proxy.lose_reply_to(b"UPDATE mainspring.jobs")

    assert remote.claim(session, "default", 1) == []

    assert remote.beat(session, {}).strays == {job.id: 1}


def test_a_silent_network_ends_in_an_error_and_heals_by_itself(
    proxy: FaultyProxy, remote: SqlStore, local: SqlStore
) -> None:
    remote.enqueue([new_job()])
    proxy.fall_silent()

    with pytest.raises(StoreUnavailable, match="can't reach PostgreSQL"):
        remote.enqueue([new_job()])

    proxy.heal()
    remote.enqueue([new_job()])
    assert local.counts()["default"][JobState.READY] in (2, 3)  # the one that failed may have arrived


def test_a_call_outlives_a_short_silence(proxy: FaultyProxy, remote: SqlStore) -> None:
    remote.enqueue([new_job()])
    proxy.fall_silent()
    timer = threading.Timer(1.0, proxy.heal)
    timer.start()

    job = new_job()
    assert remote.enqueue([job]) == [job.id]
    timer.join()


def test_broken_connections_are_replaced(proxy: FaultyProxy, remote: SqlStore) -> None:
    for _ in range(5):
        remote.enqueue([new_job()])
        proxy.hang_up()

    assert remote.counts() == {"default": {JobState.READY: 5}}


def test_when_one_connection_is_found_broken_the_idle_ones_are_not_tried(
    proxy: FaultyProxy, folder: Path, name: str
) -> None:
    """A call would else fail once for each of them before it is let through on a new one."""
    db = PostgresDatabase(url_in(folder, name))
    all_in_use = threading.Barrier(_CONNECTIONS)
    with ThreadPoolExecutor(_CONNECTIONS) as pool:
        list(pool.map(db.attempt, [lambda _: all_in_use.wait()] * _CONNECTIONS))
    proxy.hang_up()
    tries: list[bool] = []

    def look(runner: Runner) -> list[Row]:
        tries.append(runner.in_doubt)
        return runner.run("counts")

    db.attempt(look)

    assert tries == [False, True]
    db.close()


def test_a_call_that_gave_up_leaves_no_query_running(own_server: PostgresServer, name: str, local: SqlStore) -> None:
    """It would go on waiting for its locks, and write once nobody expects it any more."""
    hasty = SqlStore(PostgresDatabase(own_server.url(name), patience=0.5, deadline=0.5))
    job = claimed_job(local)
    with psycopg.connect(own_server.url(name)) as other:
        other.execute("SELECT FROM mainspring.jobs FOR UPDATE")

        with pytest.raises(StoreUnavailable):
            hasty.settle([settle(job, Succeeded("1"))])

    until(lambda: not at_work(own_server.url(name)))
    assert stored(local, job.id) == job
    hasty.close()


def test_a_listener_survives_a_broken_connection(proxy: FaultyProxy, remote: SqlStore, local: SqlStore) -> None:
    listener = remote.listen({"mail"})
    while listener.wait(0.2):
        pass
    proxy.hang_up()
    assert listener.wait(5) == {"mail"}  # there may be news that nobody heard
    while listener.wait(0.2):
        pass

    local.enqueue([new_job(queue="mail")])

    assert listener.wait(20) == {"mail"}
    listener.close()


def test_a_listener_notices_a_connection_that_is_dead_and_does_not_say_so(
    proxy: FaultyProxy, remote: SqlStore, local: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener = remote.listen({"mail"})
    while listener.wait(0.2):
        pass
    monkeypatch.setattr(wake, "_SILENCE", 0.0)
    monkeypatch.setattr(DeadlineConnection, "patience", 0.5)
    proxy.forget()
    assert listener.wait(5)  # there may be news that nobody heard
    while listener.wait(0.2):
        pass

    local.enqueue([new_job(queue="mail")])

    assert listener.wait(20)
    listener.close()


@pytest.fixture
def pooled(folder: Path, own_server: PostgresServer, name: str) -> Iterator[SqlStore]:
    pooler = TransactionPooler(folder, own_server.folder)
    store = open_store(url_in(folder, name))
    yield store
    store.close()
    pooler.close()


def test_a_pooler_in_transaction_mode_may_sit_in_between(pooled: SqlStore) -> None:
    """Twenty rounds: the driver prepares a statement on its sixth use unless it is told not to."""
    session = opened_session(pooled)
    for _ in range(20):
        pooled.enqueue(new_jobs(2))
        one, two = pooled.claim(session, "default", 2, ["greet"])
        assert pooled.record([LogLine(one.id, one.fence, 1, "INFO", "hello")], []) == {one.id}
        settled = pooled.settle([settle(one, Succeeded("1")), settle(two, Returned())])
        assert settled == {one.id, two.id}
        assert pooled.cancel([two.id]) == {two.id: JobState.CANCELLED}
        assert pooled.beat(session, {}).alive
        pooled.promote()
        pooled.reap()
    assert pooled.close_session(session)


def test_behind_a_pooler_a_block_has_one_server_session_to_its_end(pooled: SqlStore) -> None:
    for _ in range(10):
        job = claimed_job(pooled)
        with pooled.transaction(lambda job=job: settle(job, Succeeded("1"))) as connection:  # type: ignore[misc]
            for _ in range(10):
                connection.execute("SELECT %s::int", [1])
        assert stored(pooled, job.id).state is JobState.SUCCEEDED


def test_behind_a_pooler_waiting_is_polling(pooled: SqlStore) -> None:
    listener = pooled.listen({"default"})
    listener.wait(1)

    pooled.enqueue([new_job()])

    assert listener.wait(0.2) == frozenset()
    listener.close()


def test_a_node_that_falls_silent_in_a_transaction_does_not_stop_the_others(
    proxy: FaultyProxy, remote: SqlStore, local: SqlStore
) -> None:
    """It holds the lock on a dead session; the server must end its transaction, so that others can reap."""
    session = opened_session(local, lease=timedelta(milliseconds=100))
    local.enqueue(new_jobs(1))
    assert local.claim(session, "default", 1)
    until(lambda: not local.sessions()[0].alive)

    def lock_then_fall_silent(tx: Runner) -> None:
        if not tx.in_doubt:
            assert tx.run("lock_dead_session", session=session)
            proxy.fall_silent()
        tx.run("next_due")

    with pytest.raises(StoreUnavailable):
        remote._db.transact(lock_then_fall_silent)

    until(local.reap)
    assert local.counts() == {"default": {JobState.READY: 1}}


def test_a_replay_whose_reply_is_lost_happens_once(proxy: FaultyProxy, remote: SqlStore, local: SqlStore) -> None:
    """Between the lost reply and the next try the job runs and fails again."""
    job = claimed_job(local)
    local.settle([settle(job, Failed(Failure(type="E", message="e")))])
    session = opened_session(local)
    proxy.lose_reply_to(b"COMMIT\0")
    connect = remote._db._connections._open  # type: ignore[attr-defined]

    def fail_then_connect() -> object:
        for claimed in local.claim(session, "default", 1):
            local.settle([settle(claimed, Failed(Failure(type="E", message="again")))])
        return connect()

    remote._db._connections._open = fail_then_connect  # type: ignore[attr-defined]

    assert remote.replay([job.id]) == {job.id: JobState.FAILED}

    assert [past.fence for past in local.attempts(job.id)] == [1, 2]


@pytest.mark.parametrize("act", ["replay_letters", "discard_letters"])
def test_what_is_done_to_dead_letters_happens_and_counts_once_though_its_reply_is_lost(
    proxy: FaultyProxy, remote: SqlStore, local: SqlStore, act: str
) -> None:
    job = claimed_job(local)
    local.settle([settle(job, Failed(Failure(type="E", message="e")))])
    letters = local.dead_letters(LetterFilter())
    proxy.lose_reply_to(b"COMMIT\0")

    assert getattr(remote, act)(letters, "why") == {job.id}

    after = stored(local, job.id)
    expected = JobState.READY if act == "replay_letters" else JobState.CANCELLED
    assert (after.state, after.reason, after.fence) == (expected, "why", job.fence)


def test_a_letter_whose_replay_was_not_answered_and_that_failed_again_is_not_replayed_again(
    proxy: FaultyProxy, remote: SqlStore, local: SqlStore
) -> None:
    job = claimed_job(local)
    local.settle([settle(job, Failed(Failure(type="E", message="e")))])
    session, letters = opened_session(local), local.dead_letters(LetterFilter())
    proxy.lose_reply_to(b"COMMIT\0")
    connect = remote._db._connections._open  # type: ignore[attr-defined]

    def fail_then_connect() -> object:
        for claimed in local.claim(session, "default", 1):
            local.settle([settle(claimed, Failed(Failure(type="E", message="again")))])
        return connect()

    remote._db._connections._open = fail_then_connect  # type: ignore[attr-defined]

    assert remote.replay_letters(letters) == {job.id}

    assert [past.fence for past in local.attempts(job.id)] == [1, 2]


@pytest.mark.parametrize("if_taken", [IfTaken.REPLACE, IfTaken.RESCHEDULE])
def test_an_enqueue_that_changed_a_job_and_whose_reply_is_lost_makes_no_second_one(
    proxy: FaultyProxy, remote: SqlStore, local: SqlStore, if_taken: IfTaken
) -> None:
    """Between the lost reply and the next try another node runs the job to its end, with what it was given."""
    held = new_job(key="k")
    local.enqueue([held])
    changed = new_job(key="k", if_taken=if_taken, payload='{"args":[2],"kwargs":{}}')
    proxy.lose_reply_to(b"COMMIT\0")
    session = opened_session(local)
    connect = remote._db._connections._open  # type: ignore[attr-defined]

    def finish_then_connect() -> object:
        until(lambda: stored(local, held.id).payload == changed.payload)
        local.settle([settle(job, Succeeded("1")) for job in local.claim(session, "default", 9)])
        return connect()

    remote._db._connections._open = finish_then_connect  # type: ignore[attr-defined]

    assert remote.enqueue([changed]) == [held.id]

    assert (stored(local, held.id).state, local.counts()) == (JobState.SUCCEEDED, {})


def test_an_enqueue_that_changed_nothing_because_it_was_cut_off_does_it_at_the_next_try(
    proxy: FaultyProxy, remote: SqlStore, local: SqlStore
) -> None:
    held = new_job(key="k")
    local.enqueue([held])
    changed = new_job(key="k", if_taken=IfTaken.REPLACE, payload='{"args":[2],"kwargs":{}}')
    proxy.lose_reply_to(b"UPDATE mainspring.jobs")

    assert remote.enqueue([changed]) == [held.id]

    assert stored(local, held.id).payload == changed.payload


def test_an_enqueue_with_an_idempotency_key_whose_reply_is_lost_stores_its_job_once(
    proxy: FaultyProxy, remote: SqlStore, local: SqlStore
) -> None:
    """Also where the job has finished before the next try, and the key counts no longer."""
    job = new_job(idempotency_key="a", idempotency_ttl=timedelta(0))
    proxy.lose_reply_to(b"COMMIT\0")
    session = opened_session(local)
    connect = remote._db._connections._open  # type: ignore[attr-defined]

    def finish_then_connect() -> object:
        until(lambda: local.get([job.id]))
        local.settle([settle(job, Succeeded("1")) for job in local.claim(session, "default", 9)])
        return connect()

    remote._db._connections._open = finish_then_connect  # type: ignore[attr-defined]

    assert remote.enqueue([job]) == [job.id]

    assert (stored(local, job.id).state, local.counts()) == (JobState.SUCCEEDED, {})


ONE = [Limit("k", concurrency=1).want({})]


def started(store: SqlStore, session: uuid.UUID) -> list[Job]:
    """Claim jobs of which one may run at a time, and return those that may start."""
    jobs = [replace(job, holds=("k",)) for job in store.claim(session, "default", 10)]
    admitted = store.admit([(job, ONE) for job in jobs])
    return [job for job in jobs if job.id in admitted]


def before_the_next_try(store: SqlStore, act: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Have *act* called while *store* waits to try again what got no reply."""
    clock = store._db._clock  # type: ignore[attr-defined]
    sleep = clock.sleep
    acts = iter([act])

    def sleep_after_acting(seconds: float) -> None:
        next(acts, lambda: None)()
        sleep(seconds)

    monkeypatch.setattr(clock, "sleep", sleep_after_acting)


def test_a_settle_whose_reply_is_lost_frees_no_slot_of_the_next_attempt(
    proxy: FaultyProxy, remote: SqlStore, local: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    local.enqueue(new_jobs(2))
    session = opened_session(local, lease=timedelta(minutes=5))
    (first,) = started(remote, opened_session(remote, lease=timedelta(minutes=5)))
    again: list[Job] = []
    before_the_next_try(remote, lambda: again.extend(started(local, session)), monkeypatch)
    proxy.lose_reply_to(b"COMMIT\0")

    remote.settle([settle(first, Returned())])

    assert [job.id for job in again] == [first.id]
    assert local.slot_holders("k") == [first.id]
    assert started(local, session) == []


@pytest.mark.parametrize("ours", [True, False])
def test_an_admission_whose_reply_is_lost_holds_while_its_job_is_ours(
    proxy: FaultyProxy, remote: SqlStore, local: SqlStore, monkeypatch: pytest.MonkeyPatch, ours: bool
) -> None:
    local.enqueue(new_jobs(1))
    session, other = (opened_session(local, lease=timedelta(minutes=5)) for _ in range(2))
    (known,) = started(local, session)  # so is the limit now
    local.settle([settle(known, Succeeded("null"))])
    local.enqueue(new_jobs(1))
    (job,) = local.claim(session, "default", 1)
    job = replace(job, holds=("k",))
    theirs: list[Job] = []

    def lose_it() -> None:
        local.settle([settle(job, Returned())])
        theirs.extend(started(local, other))

    if not ours:
        before_the_next_try(remote, lose_it, monkeypatch)
    proxy.lose_reply_to(b"COMMIT\0")

    assert remote.admit([(job, ONE)]) == ({job.id} if ours else set())
    assert local.slot_holders("k") == [job.id]
    assert [one.fence for one in theirs] == ([] if ours else [job.fence + 1])


def test_behind_a_pooler_a_caller_enqueues_in_his_own_transaction(
    pooled: SqlStore, own_server: PostgresServer, name: str
) -> None:
    """Also when his connection goes past the pooler: it is the server that tells the database."""
    with psycopg.connect(own_server.url(name)) as conn:
        pooled.enqueue([new_job(key="k")], conn)
        assert pooled.counts() == {}
        conn.commit()

    assert pooled.counts() == {"default": {JobState.READY: 1}}


# --- families ------------------------------------------------------------------------------------------------


def test_an_enqueue_with_parents_whose_reply_is_lost_waits_for_each_parent_once(
    proxy: FaultyProxy, remote: SqlStore, local: SqlStore
) -> None:
    parents = [claimed_job(local), claimed_job(local)]
    child = child_of(*parents)
    proxy.lose_reply_to(b"COMMIT\0")

    assert remote.enqueue([child]) == [child.id]
    assert stored(local, child.id).pending == 2
    for state, parent in zip((JobState.BLOCKED, JobState.READY), parents, strict=True):
        local.settle([settle(parent, Succeeded("1"))])
        assert stored(local, child.id).state is state


def test_a_parent_that_ends_between_a_lost_reply_and_the_next_try_has_set_its_child_free(
    proxy: FaultyProxy, remote: SqlStore, local: SqlStore
) -> None:
    parents = [claimed_job(local), claimed_job(local)]
    child = child_of(*parents)
    proxy.lose_reply_to(b"COMMIT\0")
    connect = remote._db._connections._open  # type: ignore[attr-defined]

    def end_then_connect() -> object:
        local.settle([settle(parents[0], Succeeded("1"))])
        return connect()

    remote._db._connections._open = end_then_connect  # type: ignore[attr-defined]

    assert remote.enqueue([child]) == [child.id]

    assert (stored(local, child.id).state, stored(local, child.id).pending) == (JobState.BLOCKED, 1)
    local.settle([settle(parents[1], Succeeded("1"))])
    assert stored(local, child.id).state is JobState.READY


def test_a_settle_of_a_parent_whose_reply_is_lost_counts_once(
    proxy: FaultyProxy, remote: SqlStore, local: SqlStore
) -> None:
    one, other = claimed_job(remote), claimed_job(remote)
    child = child_of(one, other)
    local.enqueue([child])
    proxy.lose_reply_to(b"COMMIT\0")

    assert remote.settle([settle(one, Succeeded("1"))]) == {one.id}

    assert (stored(local, child.id).state, stored(local, child.id).pending) == (JobState.BLOCKED, 1)
    local.settle([settle(other, Succeeded("1"))])
    assert stored(local, child.id).state is JobState.READY


def test_a_settle_of_a_member_whose_reply_is_lost_counts_once_for_its_workflow(
    proxy: FaultyProxy, remote: SqlStore, local: SqlStore
) -> None:
    """Were it counted twice, the workflow would end before its other member."""
    new = new_workflow(new_job(), new_job(queue="other"))
    local.enqueue_workflow(new)
    (job,) = remote.claim(opened_session(remote), "default", 1)
    proxy.lose_reply_to(b"COMMIT\0")

    assert remote.settle([settle(job, Succeeded("1"))]) == {job.id}

    local.release()
    assert (stored(local, new.job.id).state, stored(local, new.job.id).pending) == (JobState.BLOCKED, 1)


def test_a_settle_that_adds_members_whose_reply_is_lost_adds_them_once(
    proxy: FaultyProxy, remote: SqlStore, local: SqlStore
) -> None:
    new = new_workflow(new_job())
    local.enqueue_workflow(new)
    (job,) = remote.claim(opened_session(remote), "default", 1)
    added = new_job(workflow=new.job.id)
    proxy.lose_reply_to(b"COMMIT\0")

    assert remote.settle([settle(job, Succeeded("1", added=(added,)))]) == {job.id}

    assert stored(local, new.job.id).pending == 1
    assert work_off(local) == [added.id]
    assert stored(local, new.job.id).state is JobState.SUCCEEDED


def test_a_workflow_whose_reply_is_lost_is_stored_once_with_its_members(
    proxy: FaultyProxy, remote: SqlStore, local: SqlStore
) -> None:
    first = new_job()
    new = new_workflow(first, child_of(first, key="k"))
    proxy.lose_reply_to(b"COMMIT\0")

    assert remote.enqueue_workflow(new) == new.job.id

    assert stored(local, new.job.id).pending == 2
    assert work_off(local) == [job.id for job in new.members]
    assert stored(local, new.job.id).state is JobState.SUCCEEDED


def test_a_workflow_whose_reply_is_lost_and_that_has_run_since_is_not_stored_again(
    proxy: FaultyProxy, remote: SqlStore, local: SqlStore
) -> None:
    new = new_workflow(new_job(key="k"), key="w")
    proxy.lose_reply_to(b"COMMIT\0")
    connect = remote._db._connections._open  # type: ignore[attr-defined]

    def work_then_connect() -> object:
        work_off(local)
        return connect()

    remote._db._connections._open = work_then_connect  # type: ignore[attr-defined]

    assert remote.enqueue_workflow(new) == new.job.id

    assert stored(local, new.job.id).state is JobState.SUCCEEDED
    assert local.counts() == {}


def test_a_replay_whose_reply_is_lost_counts_a_member_once(
    proxy: FaultyProxy, remote: SqlStore, local: SqlStore
) -> None:
    new = new_workflow(new_job(), new_job(queue="other"))
    local.enqueue_workflow(new)
    bad = new.members[0]
    work_off(local, {bad.id: Failed(Failure(type="E", message="e"), retryable=False)})
    proxy.lose_reply_to(b"COMMIT\0")

    assert remote.replay([bad.id]) == {bad.id: JobState.READY}

    assert stored(local, new.job.id).pending == 2


def test_an_audit_entry_whose_reply_is_lost_is_written_once(
    proxy: FaultyProxy, remote: SqlStore, local: SqlStore
) -> None:
    proxy.lose_reply_to(b"COMMIT\0")

    remote.record_audit([Entry("ada", "job.cancel", "1"), Entry("ada", "job.cancel", "2")])

    assert [entry.target for entry in local.audit()] == ["2", "1"]
    assert local.verify_audit().whole


def test_a_job_whose_reply_is_lost_is_on_record_once(proxy: FaultyProxy, remote: SqlStore, local: SqlStore) -> None:
    job = new_job()
    proxy.lose_reply_to(b"COMMIT\0")

    assert remote.enqueue([job], entries=[Entry("ada", "job.enqueue", str(job.id))]) == [job.id]

    assert local.counts() == {"default": {JobState.READY: 1}}
    assert [entry.target for entry in local.audit()] == [str(job.id)]


def test_a_token_whose_reply_is_lost_is_made_once(proxy: FaultyProxy, remote: SqlStore, local: SqlStore) -> None:
    new = NewToken(id="a" * 12, digest="0" * 64, name="ci", grants={"acme": Role.VIEWER}, created_by="ada")
    proxy.lose_reply_to(b"INSERT INTO mainspring.tokens")

    made = remote.create_token(new)

    assert local.tokens() == [made]


@pytest.mark.parametrize(
    "outcome",
    [Succeeded("1"), Failed(Failure(type="E", message="e")), Failed(Failure(type="E", message="e"), retryable=False)],
    ids=["success", "retry", "failure"],
)
def test_a_settle_whose_reply_is_lost_tells_people_once(
    proxy: FaultyProxy, remote: SqlStore, local: SqlStore, outcome: Succeeded | Failed
) -> None:
    job = claimed_job(remote, notify=telling())
    proxy.lose_reply_to(b"COMMIT\0")

    assert remote.settle([settle(job, outcome, Retry(max_attempts=2))]) == {job.id}

    assert len(notifications(local)) == 1


def test_a_settle_that_never_arrived_tells_people_once(proxy: FaultyProxy, remote: SqlStore, local: SqlStore) -> None:
    job = claimed_job(remote, notify=telling())
    proxy.lose_reply_to(b"INSERT INTO mainspring.jobs_done")  # and so the transaction is rolled back

    assert remote.settle([settle(job, Succeeded("1"))]) == {job.id}

    assert events(local) == ["success"]


def test_an_alarm_whose_reply_is_lost_tells_people_once(proxy: FaultyProxy, remote: SqlStore, local: SqlStore) -> None:
    late = new_schedule(notify=telling(), expect_success_within=timedelta(microseconds=1), trigger=every("1s"))
    local.put_schedules([late])
    until(lambda: fire(local).schedules)
    proxy.lose_reply_to(b"COMMIT\0")

    remote.find_overdue()
    remote.find_overdue()

    assert events(local) == ["late"]
