"""Idempotency keys: a request that is repeated gets the job of the first, until some time after that has finished."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from mainspring.model.failure import Failure
from mainspring.model.job import IfTaken, JobState, NewJob
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Failed, Succeeded
from mainspring.store import chunks, sweep
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.databases import connected, execute, table
from tests.support.factories import new_job, opened_session

HOUR = timedelta(hours=1)
YEARS = timedelta(days=900)


def asked(key: str = "order-42", **changes: Any) -> NewJob:
    return new_job(idempotency_key=key, **changes)


def finish(store: SqlStore, *, succeed: bool = True) -> None:
    outcome = Succeeded("1") if succeed else Failed(Failure(type="E", message="e"))
    store.settle([settle(job, outcome) for job in store.claim(opened_session(store), "default", 1_000)])


def kept(url: str) -> int:
    return int(execute(url, f"SELECT count(*) FROM {table(url, 'idempotency')}")[0][0])


def test_a_repeated_request_gets_the_first_job_while_that_lives(store: SqlStore, clock: SettableClock) -> None:
    first = asked()

    assert store.enqueue([first]) == [first.id]
    clock.advance("900d")
    assert store.enqueue([asked()]) == [first.id]
    opened = store.claim(opened_session(store), "default", 9)
    assert store.enqueue([asked(), other := asked("order-43")]) == [first.id, other.id]

    assert [job.id for job in opened] == [first.id]


@pytest.mark.parametrize("succeed", [True, False])
def test_it_gets_it_until_its_time_past_the_finish_is_over(
    store: SqlStore, clock: SettableClock, succeed: bool
) -> None:
    first, later = asked(), asked()
    store.enqueue([first])
    clock.advance("3h")
    finish(store, succeed=succeed)

    clock.advance("23h59m59s")
    assert store.enqueue([asked()]) == [first.id]
    clock.advance("1s")
    assert store.enqueue([later]) == [later.id]
    assert store.enqueue([asked()]) == [later.id]


def test_the_time_is_the_first_requests(store: SqlStore, clock: SettableClock) -> None:
    first, second, third = asked(idempotency_ttl=HOUR), asked(idempotency_ttl=2 * HOUR), asked()
    store.enqueue([first])
    finish(store)
    clock.advance("59m")
    assert store.enqueue([asked(idempotency_ttl=timedelta(0))]) == [first.id]
    clock.advance("1m")

    assert store.enqueue([second]) == [second.id]
    finish(store)
    clock.advance("1h59m")
    assert store.enqueue([third]) == [second.id]
    clock.advance("1m")
    assert store.enqueue([third]) == [third.id]


def test_no_time_at_all_means_while_the_job_lives(store: SqlStore) -> None:
    first, second = asked(idempotency_ttl=timedelta(0)), asked()
    store.enqueue([first])
    assert store.enqueue([second]) == [first.id]
    finish(store)

    assert store.enqueue([second]) == [second.id]


def test_a_replayed_job_counts_again(store: SqlStore, clock: SettableClock) -> None:
    first = asked()
    store.enqueue([first])
    finish(store, succeed=False)
    clock.advance("2d")
    store.replay([first.id])

    assert store.enqueue([asked()]) == [first.id]


def test_the_first_of_a_batch_stands_for_the_others(store: SqlStore) -> None:
    jobs = [asked(), asked(), new_job(), asked("b"), asked("b")]

    assert store.enqueue(jobs) == [jobs[0].id, jobs[0].id, jobs[2].id, jobs[3].id, jobs[3].id]
    again = [asked("b"), asked(), new_job()]
    assert store.enqueue(again) == [jobs[3].id, jobs[0].id, again[2].id]

    assert store.counts() == {"default": {JobState.READY: 4}}


def test_a_large_batch_is_taken_whole(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "MOST", 2)
    jobs = [asked(str(number % 5)) for number in range(12)]

    assert store.enqueue(jobs) == [jobs[number % 5].id for number in range(12)]
    assert store.enqueue([asked(str(number)) for number in range(5)]) == [job.id for job in jobs[:5]]


def test_a_job_that_stands_for_it_by_its_key_stands_for_it_from_then_on(store: SqlStore, clock: SettableClock) -> None:
    holder = new_job(key="k")
    store.enqueue([holder])

    assert store.enqueue([new_job(key="k", idempotency_key="a")]) == [holder.id]
    finish(store)
    clock.advance("1h")

    assert store.enqueue([new_job(key="k", idempotency_key="a")]) == [holder.id]
    clock.advance("23h")
    again = new_job(key="k", idempotency_key="a")
    assert store.enqueue([again]) == [again.id]


def test_a_repeated_request_changes_nothing(store: SqlStore) -> None:
    first = new_job(key="k", idempotency_key="a")
    store.enqueue([first])

    again = new_job(key="k", idempotency_key="a", if_taken=IfTaken.REPLACE, priority=9)
    assert store.enqueue([again]) == [first.id]

    assert store.get([first.id])[first.id].priority == 5


def test_it_holds_if_the_callers_transaction_does(url: str, store: SqlStore) -> None:
    with connected(url) as conn:
        store.enqueue([asked()], conn)
        conn.rollback()
        assert kept(url) == 0
        first = asked()
        assert store.enqueue([first], conn) == [first.id]
        assert store.enqueue([asked()], conn) == [first.id]
        conn.commit()

    assert store.enqueue([asked()]) == [first.id]


def test_without_a_key_nothing_is_kept(url: str, store: SqlStore) -> None:
    store.enqueue([new_job(), new_job(key="k")])

    assert kept(url) == 0


# --- prune -------------------------------------------------------------------------------------------------------


def test_a_key_is_pruned_once_it_counts_no_longer(url: str, store: SqlStore, clock: SettableClock) -> None:
    store.enqueue([asked("lives"), asked("done"), asked("brief", idempotency_ttl=HOUR)])
    _, *done = store.claim(opened_session(store), "default", 3)
    store.settle([settle(job, Succeeded("1")) for job in done])

    clock.advance("59m")
    store.prune(YEARS)
    assert kept(url) == 3
    clock.advance("1m")
    store.prune(YEARS)
    assert kept(url) == 2
    clock.advance("23h")
    store.prune(YEARS)
    assert kept(url) == 1
    clock.advance("500d")
    store.prune(YEARS)
    assert kept(url) == 1


def test_a_key_that_was_looked_at_while_its_job_lived_is_pruned_later(
    url: str, store: SqlStore, clock: SettableClock
) -> None:
    first = asked()
    store.enqueue([first])
    clock.advance("30h")
    store.prune(YEARS)
    finish(store)
    clock.advance("23h59m")
    store.prune(YEARS)
    assert store.enqueue([asked()]) == [first.id]
    clock.advance("1m")
    store.prune(YEARS)

    assert kept(url) == 0


def test_a_key_goes_when_its_job_was_pruned(url: str, store: SqlStore, clock: SettableClock) -> None:
    store.enqueue([asked(idempotency_ttl=timedelta(days=3))])
    finish(store)
    clock.advance("4d")
    assert store.prune(timedelta(0)) == 1

    assert kept(url) == 0


def test_a_job_that_was_pruned_counts_no_longer(store: SqlStore, clock: SettableClock) -> None:
    store.enqueue([asked(idempotency_ttl=timedelta(days=30))])
    finish(store)
    clock.advance("4d")
    store.prune(timedelta(0))
    again = asked()

    assert store.enqueue([again]) == [again.id]


def test_more_than_one_batch_of_keys_is_pruned_in_one_call(
    url: str, store: SqlStore, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "PRUNE_BATCH", 3)
    store.enqueue([asked(f"a{number}") for number in range(10)])
    finish(store)
    store.enqueue([asked(f"b{number}") for number in range(10)])
    clock.advance("25h")
    store.prune(YEARS)

    assert kept(url) == 10
