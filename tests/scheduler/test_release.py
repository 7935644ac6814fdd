"""The release sweep: it looks at once when it hears that something is left to be followed up."""

from __future__ import annotations

import threading

import pytest

from mainspring.model.job import JobState
from mainspring.scheduler import Scheduler, sweep
from mainspring.store.database import DUE, RELEASE
from mainspring.store.protocol import Released
from mainspring.store.sql import SqlStore
from tests.support.factories import end, new_job, new_workflow, state_of
from tests.support.waiting import until


def test_it_looks_at_once_when_it_hears_of_something_to_follow_up(
    real_store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "POLL", 3600.0)
    looked = threading.Semaphore(0)
    look = real_store.release

    def counted() -> Released:
        answer = look()
        looked.release()
        return answer

    monkeypatch.setattr(real_store, "release", counted)
    scheduler = Scheduler(real_store)
    scheduler.start()
    until(lambda: looked.acquire(blocking=False))
    new = new_workflow(new_job())
    real_store.enqueue_workflow(new)
    end(real_store, new.members[0])

    scheduler.heard({DUE})
    assert not looked.acquire(timeout=0.2)
    scheduler.heard({RELEASE})
    assert looked.acquire(timeout=10)

    assert state_of(real_store, new.job) is JobState.SUCCEEDED
    scheduler.close(10)
