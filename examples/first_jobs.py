"""Your first jobs: enqueue → claim → execute → settle, and promote for what is due later.

A worker does this for you; here it is done by hand, so that every step shows. Run it as often as you like.
It uses the database that MAINSPRING_URL names, or else a SQLite file.
"""

from __future__ import annotations

import os
import sys
from contextlib import closing
from datetime import timedelta
from uuid import UUID

from mainspring.clock import SystemClock, microseconds, random_bits
from mainspring.errors import MainspringError
from mainspring.model import lifecycle
from mainspring.model.failure import Failure
from mainspring.model.ids import IdSource
from mainspring.model.job import Job, NewJob
from mainspring.model.outcome import Failed, Outcome, Succeeded
from mainspring.model.payload import decode_call, encode_call, encode_result
from mainspring.model.retry import Retry
from mainspring.model.session import NewSession
from mainspring.store import Store, open_store

CLOCK = SystemClock()
STARTED = CLOCK.steady()
IDS = IdSource(lambda: microseconds(CLOCK.now()) // 1000, random_bits)
RUN = f"first-jobs-{IDS.next()}"  # a queue and a key of this run's own, so that no other run is met


def say(step: str, what: str) -> None:
    print(f"{CLOCK.steady() - STARTED:6.3f} s  {step:8}  {what}")


def greet(name: str, attempt: int) -> str:
    if name == "Bob" and attempt == 1:
        raise ConnectionError("Bob does not answer")
    return f"Hello, {name}!"


def enqueue(store: Store, name: str, *, delay: int = 0, key: str | None = None) -> UUID:
    payload, later = encode_call([name], {}), timedelta(seconds=delay)
    job = NewJob(id=IDS.next(), task="greet", payload=payload, queue=RUN, delay=later, key=key)
    (standing,) = store.enqueue([job])  # once this has returned, the job is never lost
    when = f"due in {delay} s" if delay else "due now"
    say("enqueue", f"greet {name}, {when if standing == job.id else 'which a job with the same key stands for'}")
    return standing


def execute(job: Job) -> Outcome:
    (name,) = decode_call(job.payload).args
    say("execute", f"greet {name}, attempt {job.attempt}")
    try:
        return Succeeded(encode_result(greet(name, job.attempt)))
    except ConnectionError as error:
        return Failed(Failure(type=type(error).__name__, message=str(error)))


def work(store: Store, session: UUID, unfinished: set[UUID]) -> None:
    while unfinished:
        store.promote()  # jobs whose time has come become ready
        claimed = store.claim(session, RUN, limit=10)
        if claimed:
            say("claim", f"{len(claimed)} of the jobs that are ready")
        for job in claimed:
            outcome = execute(job)
            # Decide first, write second. The write holds only while the job is still ours, by its fence.
            settlement = lifecycle.settle(job, outcome, Retry(max_attempts=3, base="0.5s"))
            store.settle([settlement])
            news = outcome.result if isinstance(outcome, Succeeded) else "it failed, and is due again in 0.5 s"
            say("settle", f"{settlement.state}: {news}")
            if settlement.state.final:
                unfinished.discard(job.id)
        CLOCK.sleep(0.02)


def main() -> None:
    with closing(open_store(os.environ.get("MAINSPRING_URL") or "sqlite:///mainspring.db")) as store:
        session = NewSession(id=IDS.next(), name="first-jobs")
        store.open_session(session)  # this ends well within the session's lease of 15 s, so it need not beat
        jobs = {enqueue(store, "Ada"), enqueue(store, "Bob"), enqueue(store, "the future", delay=1)}
        jobs |= {enqueue(store, "Grace", key=RUN), enqueue(store, "Grace", key=RUN)}
        work(store, session.id, jobs)
        store.close_session(session.id)
        say("done", "all jobs have finished")


if __name__ == "__main__":
    try:
        main()
    except MainspringError as error:
        sys.exit(f"error: {error}")
