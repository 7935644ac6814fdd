"""Wake: a hint to look again, at once and across processes."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from mainspring.errors import StoreError
from mainspring.model.failure import Failure
from mainspring.model.journal import LogLine
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Failed, Returned, Succeeded
from mainspring.model.retry import Retry
from mainspring.store import open_store
from mainspring.store.database import DUE, WISH, Listener
from mainspring.store.sql import SqlStore
from mainspring.store.sqlite import ears
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


def test_an_enqueue_by_another_node_wakes_where_the_system_does_not_tell_of_writes(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ears, "_watch", lambda _: None)
    store, other = open_store(sqlite_url), open_store(sqlite_url)
    listener = settled_down(store.listen({"mail"}))

    other.enqueue([new_job(queue="mail")])

    assert listener.wait(LONG)
    store.close()
    other.close()


def test_a_delayed_job_wakes_whoever_waits_for_due_times(real_store: SqlStore) -> None:
    listener = settled_down(real_store.listen({DUE}))

    real_store.enqueue([new_job(delay=timedelta(hours=1))])

    assert listener.wait(LONG)
    listener.close()


def test_a_retry_wakes_whoever_waits_for_due_times(real_store: SqlStore) -> None:
    job = claimed_job(real_store)
    listener = settled_down(real_store.listen({DUE}))

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


def test_a_listener_tells_what_it_heard(real_store: SqlStore) -> None:
    listener = settled_down(real_store.listen({"mail", "default", DUE, WISH}))

    real_store.enqueue([new_job(queue="mail"), new_job(queue="other")])
    assert listener.wait(LONG) == {"mail"}

    real_store.enqueue([new_job(delay=timedelta(hours=1))])
    assert listener.wait(LONG) == {DUE}
    listener.close()


def test_a_listener_forgets_nothing_that_was_said_at_once(real_store: SqlStore) -> None:
    topics = {f"q{n}" for n in range(20)}
    listener = settled_down(real_store.listen(topics))

    real_store.enqueue([new_job(queue=queue) for queue in topics])

    heard: set[str] = set()
    while heard != topics:
        news = listener.wait(LONG)
        assert news
        heard |= news
    listener.close()


def test_wishes_for_running_jobs_are_heard_at_once(real_store: SqlStore) -> None:
    job, waiting = claimed_job(real_store), new_job()
    real_store.enqueue([waiting])
    listener = settled_down(real_store.listen({WISH}))

    real_store.pause([job.id])
    assert listener.wait(LONG) == {WISH}

    real_store.resume([job.id])
    assert listener.wait(LONG) == {WISH}

    real_store.cancel([job.id])
    assert listener.wait(LONG) == {WISH}

    real_store.cancel([job.id, waiting.id])
    assert listener.wait(0.3) == frozenset()
    listener.close()


def test_what_is_no_news_to_anybody_wakes_nobody(real_store: SqlStore) -> None:
    """A worker that beats when it is woken, and was woken by its beat, would never stop."""
    session = opened_session(real_store)
    job = claimed_job(real_store, session)
    listener = settled_down(real_store.listen({"default", DUE, WISH}))

    real_store.beat(session, {job.id: job.fence})
    real_store.claim(session, "default", 1)
    real_store.record([LogLine(job.id, job.fence, 1, "INFO", "hello")], [])
    real_store.settle([settle(job, Succeeded("1"))])

    assert listener.wait(0.3) == frozenset()
    listener.close()


def test_another_node_is_heard_among_work_of_ones_own(url: str, real_store: SqlStore) -> None:
    session = opened_session(real_store)
    listener = settled_down(real_store.listen({"mail", WISH}))
    other = open_store(url)

    real_store.beat(session, {})
    other.enqueue([new_job(queue="mail")])
    real_store.beat(session, {})

    assert "mail" in listener.wait(LONG)
    listener.close()
    other.close()


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


def test_silence_is_answered_with_nothing(real_store: SqlStore) -> None:
    listener = settled_down(real_store.listen({"mail"}))

    assert listener.wait(0.05) == frozenset()
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

        assert waiting.result(LONG) == frozenset()
    with pytest.raises(StoreError, match="closed"):
        listener.wait(1)


def test_a_signal_may_close_the_store_that_its_thread_waits_on(url: str) -> None:
    store = open_store(url)
    listener = settled_down(store.listen({"mail"}))
    before = signal.signal(signal.SIGUSR1, lambda *_: store.close())
    try:
        timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGUSR1))
        timer.start()

        assert listener.wait(LONG) == frozenset()
    finally:
        signal.signal(signal.SIGUSR1, before)
