"""Jobs in every state, as a worker and people leave them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from uuid import UUID

from mainspring.clock import SystemClock, microseconds, random_bits
from mainspring.model.failure import Failure
from mainspring.model.ids import IdSource
from mainspring.model.job import Job, NewJob
from mainspring.model.journal import LogLine, Progress
from mainspring.model.lifecycle import NO_RETRY, settle
from mainspring.model.outcome import Failed, Outcome, Succeeded
from mainspring.model.payload import encode_call
from mainspring.model.retry import Retry
from mainspring.model.session import NewSession
from mainspring.store import open_store
from mainspring.store.sql import SqlStore

IDS = IdSource(lambda: microseconds(SystemClock().now()) // 1000, random_bits)
FAILED = Failed(Failure(type="ValueError", message="no luck", traceback="Traceback …\nValueError: no luck"))


class Jobs:
    """Makes jobs in one database."""

    def __init__(self, store: SqlStore, url: str) -> None:
        self.store = store
        self.url = url
        self.session = NewSession(id=IDS.next(), name="host:1234", lease=timedelta(hours=1))
        store.open_session(self.session)

    def add(self, task: str = "greet", queue: str = "default", key: str | None = None, delay: int = 0) -> UUID:
        payload = encode_call(["Ada", 1], {"loud": True})
        job = NewJob(id=IDS.next(), task=task, payload=payload, queue=queue, key=key, delay=timedelta(seconds=delay))
        return self.store.enqueue([job])[0]

    def run(self, task: str = "greet", queue: str = "default", key: str | None = None) -> Job:
        """Add a job, and claim it."""
        self.add(task, queue, key)
        (job,) = self.store.claim(self.session.id, queue, 1, [task])
        return job

    def end(self, outcome: Outcome, retry: Retry = NO_RETRY, /, **like: str) -> Job:
        """Add a job that has come to *outcome*."""
        job = self.run(**like)
        self.store.settle([settle(job, outcome, retry)])
        return self.store.get([job.id])[job.id]

    def succeed(self, **like: str) -> Job:
        return self.end(Succeeded('"Hello"'), NO_RETRY, **like)

    def fail(self, **like: str) -> Job:
        return self.end(FAILED, NO_RETRY, **like)

    def say(self, job: Job, *messages: str, level: str = "info") -> None:
        lines = [LogLine(job.id, job.fence, number, level, message) for number, message in enumerate(messages, 1)]
        self.store.record(lines, [])

    def progress(self, job: Job, done: float, total: float | None, note: str | None = None) -> None:
        self.store.record([], [Progress(job.id, job.fence, done, total, note)])

    def get(self, job_id: UUID) -> Job:
        return self.store.get([job_id])[job_id]


@contextmanager
def jobs_in(url: str) -> Iterator[Jobs]:
    store = open_store(url)
    try:
        yield Jobs(store, url)
    finally:
        store.close()
