"""Wake: a hint to look again, at once and across processes."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from mainspring.errors import StoreError
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Failed, Failure, Returned
from mainspring.model.retry import Retry
from mainspring.store import open_store
from mainspring.store.database import Listener
from mainspring.store.sql import SqlStore
from tests.support.factories import claimed_job, new_job, opened_session

LONG = 20.0


def settled_down(listener: Listener) -> Listener:
    """A new listener may say at first that there could be news; let it have said so."""
    while listener.wait(0.3):
        pass
    return listener


def test_an_enqueue_wakes_whoever_waits_for_its_queue(real_store: SqlStore) -> None:
    listener = settled_down(real_store.listen({"mail"}))

    real_store.enqueue([new_job(queue="mail")])

    assert listener.wait(LONG)
    listener.close()


def test_an_enqueue_by_another_node_wakes_too(url: str, real_store: SqlStore) -> None:
    listener = settled_down(real_store.listen({"mail"}))
    other = open_store(url)

    other.enqueue([new_job(queue="mail")])

    assert listener.wait(LONG)
    listener.close()
    other.close()


def test_a_delayed_job_wakes_whoever_waits_for_due_times(real_store: SqlStore) -> None:
    listener = settled_down(real_store.listen_due())

    real_store.enqueue([new_job(delay=timedelta(hours=1))])

    assert listener.wait(LONG)
    listener.close()


def test_a_retry_wakes_whoever_waits_for_due_times(real_store: SqlStore) -> None:
    job = claimed_job(real_store)
    listener = settled_down(real_store.listen_due())

    real_store.settle([settle(job, Failed(Failure(type="E", message="e")), Retry())])

    assert listener.wait(LONG)
    listener.close()


def test_a_job_given_back_wakes_its_queue(real_store: SqlStore) -> None:
    job = claimed_job(real_store)
    listener = settled_down(real_store.listen({"default"}))

    real_store.settle([settle(job, Returned())])

    assert listener.wait(LONG)
    listener.close()


def test_promote_resume_replay_and_reap_wake_the_queue(real_store: SqlStore) -> None:
    listener = settled_down(real_store.listen({"default"}))

    job = new_job(delay=timedelta(milliseconds=1))
    real_store.enqueue([job])
    while not real_store.promote().count:
        pass
    assert listener.wait(LONG)

    settled_down(listener)
    real_store.pause([job.id])
    real_store.resume([job.id])
    assert listener.wait(LONG)

    settled_down(listener)
    real_store.cancel([job.id])
    real_store.replay([job.id])
    assert listener.wait(LONG)

    settled_down(listener)
    session = opened_session(real_store, lease=timedelta(milliseconds=100))
    assert real_store.claim(session, "default", 1)
    while not real_store.reap():
        pass
    assert listener.wait(LONG)
    listener.close()


def test_a_wake_for_another_queue_is_no_news(real_store: SqlStore) -> None:
    """The wake alone: on SQLite a commit may be news to everybody, whatever it was about."""
    mail, reports = settled_down(real_store.listen({"mail"})), settled_down(real_store.listen({"reports"}))

    real_store._db.wake({"reports"})

    assert reports.wait(LONG)
    assert not mail.wait(0.3)
    real_store._db.wake({"mail"})
    assert mail.wait(LONG)
    mail.close()
    reports.close()


def test_silence_is_answered_with_false(real_store: SqlStore) -> None:
    listener = settled_down(real_store.listen({"mail"}))

    assert not listener.wait(0.05)
    listener.close()


def test_a_job_for_a_past_time_wakes_its_queue(real_store: SqlStore) -> None:
    listener = settled_down(real_store.listen({"mail"}))

    real_store.enqueue([new_job(queue="mail", run_at=datetime(2020, 1, 1, tzinfo=UTC))])

    assert listener.wait(LONG)
    listener.close()


def test_closing_the_store_ends_a_wait_on_it(url: str) -> None:
    store = open_store(url)
    listener = settled_down(store.listen({"mail"}))
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(listener.wait, 600)

        store.close()

        assert waiting.result(LONG) is False
    with pytest.raises(StoreError, match="closed"):
        listener.wait(1)


def test_a_signal_may_close_the_store_that_its_thread_waits_on(url: str) -> None:
    store = open_store(url)
    listener = settled_down(store.listen({"mail"}))
    before = signal.signal(signal.SIGUSR1, lambda *_: store.close())
    try:
        timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGUSR1))
        timer.start()

        assert listener.wait(LONG) is False
    finally:
        signal.signal(signal.SIGUSR1, before)
