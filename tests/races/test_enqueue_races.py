"""Many enqueue the same at once: there is one job, and everybody is told of it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from mainspring.model.job import IfTaken, JobState, NewJob
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Succeeded
from mainspring.store import open_store
from mainspring.store.sql import SqlStore
from tests.races.test_claim_races import THREADS, claim_within, each_at_once
from tests.support.databases import execute
from tests.support.factories import new_job, opened_session, stored
from tests.support.waiting import until, waiting_for_a_lock


@pytest.fixture
def stores(url: str) -> Iterator[list[SqlStore]]:
    """As many stores on one database as there are threads, as if each were a process."""
    opened = [open_store(url) for _ in range(THREADS)]
    yield opened
    for store in opened:
        store.close()


def asked(key: str = "a", **changes: Any) -> NewJob:
    return new_job(idempotency_key=key, **{"idempotency_ttl": timedelta(0)} | changes)


def finish_all(store: SqlStore) -> None:
    store.settle([settle(job, Succeeded("1")) for job in store.claim(opened_session(store), "default", 1_000)])


def test_one_job_is_made_of_requests_with_one_idempotency_key(stores: list[SqlStore]) -> None:
    for _ in range(10):
        told = each_at_once(stores, lambda store: store.enqueue([asked("b"), asked("a")]))

        assert len({tuple(ids) for ids in told}) == 1
        assert stores[0].counts() == {"default": {JobState.READY: 2}}
        # Then the keys count no longer, and everybody wants to be the first to have them again.
        finish_all(stores[0])


def test_batches_with_the_same_idempotency_keys_do_not_wait_in_a_circle(stores: list[SqlStore]) -> None:
    keys = [str(number) for number in range(50)]
    batches = iter([keys, keys[::-1]] * THREADS)

    told = each_at_once(
        stores,
        lambda store: dict(zip(order := next(batches), store.enqueue([asked(key) for key in order]), strict=True)),
    )

    assert all(ids == told[0] for ids in told)
    assert stores[0].counts() == {"default": {JobState.READY: 50}}


@pytest.mark.parametrize("used_before", [False, True])
def test_a_request_waits_for_another_that_is_not_committed_yet(postgres_url: str, used_before: bool) -> None:
    """What it finds when the other is done is the job of the other, which it could not see when it began to wait."""
    store = open_store(postgres_url)
    if used_before:
        store.enqueue([asked()])
        finish_all(store)
    first = asked()
    with psycopg.connect(postgres_url) as conn, ThreadPoolExecutor(1) as threads:
        assert store.enqueue([first], conn) == [first.id]
        second = threads.submit(store.enqueue, [asked()])
        until(lambda: waiting_for_a_lock(postgres_url))
        conn.commit()

        assert second.result() == [first.id]
    store.close()


def test_a_key_is_not_pruned_while_it_is_given_to_another_job(postgres_url: str) -> None:
    store = open_store(postgres_url)
    store.enqueue([asked()])
    finish_all(store)
    execute(postgres_url, "UPDATE mainspring.idempotency SET look_at = now() - interval '1 hour'")
    first = asked()
    with psycopg.connect(postgres_url) as conn:
        store.enqueue([first], conn)
        store.prune(timedelta(days=900))
        conn.commit()
    store.prune(timedelta(days=900))

    assert store.enqueue([asked()]) == [first.id]
    store.close()


def test_a_job_that_is_being_claimed_is_not_changed(postgres_url: str) -> None:
    """The change waits for the claim, and then finds the job running."""
    store, other = open_store(postgres_url), open_store(postgres_url)
    session = opened_session(store)
    held = new_job(key="k")
    store.enqueue([held])
    changed = new_job(key="k", if_taken=IfTaken.REPLACE, payload='{"args":[2],"kwargs":{}}')

    with ThreadPoolExecutor(1) as threads:

        def claim_slowly(tx: Any) -> Any:
            assert len(claim_within(tx, session)) == 1
            waiting = threads.submit(other.enqueue, [changed])
            until(lambda: waiting_for_a_lock(postgres_url))
            return waiting

        assert store._db.transact(claim_slowly).result() == [held.id]

    assert (stored(store, held.id).payload, stored(store, held.id).state) == (held.payload, JobState.RUNNING)
    store.close()
    other.close()


def test_changes_and_claims_at_once_leave_one_job_as_it_was_asked_for_last(stores: list[SqlStore]) -> None:
    def work(store: SqlStore) -> None:
        session = opened_session(store)
        for number in range(15):
            store.enqueue([new_job(key="k", if_taken=IfTaken.REPLACE, payload=f'{{"args":[{number}],"kwargs":{{}}}}')])
            if store is stores[0]:
                store.settle([settle(job, Succeeded("1")) for job in store.claim(session, "default", 9)])

    each_at_once(stores, work)

    last = new_job(key="k", if_taken=IfTaken.REPLACE, payload='{"args":["last"],"kwargs":{}}')
    stores[0].enqueue([last])
    (job,) = stores[0].claim(opened_session(stores[0]), "default", 9)
    assert job.payload == last.payload
