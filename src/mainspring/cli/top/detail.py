"""What is said of one queue, one worker or one job when it is open."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from rich.text import Text

from mainspring.cli.jobs.logs import COLOURS, message_of
from mainspring.cli.jobs.look import state_of, when
from mainspring.cli.pauses import by_whom, how_long
from mainspring.cli.times import ago, span
from mainspring.cli.top.grid import flat
from mainspring.cli.top.lists import bar, error_of, note_of
from mainspring.cli.top.screen import place_of
from mainspring.cli.top.snapshot import Detail, Place, Snapshot
from mainspring.model.journal import LogEntry
from mainspring.model.queue import Queue, jobs_in
from mainspring.model.session import Session

_LAST_ATTEMPTS = 5


def facts(place: Place, snapshot: Snapshot) -> Iterator[Text]:
    """Yield what there is to say of the queue or the worker at *place*, a line each."""
    for queue in snapshot.queues:
        if place_of(queue) == place:
            yield from _of_queue(queue, snapshot.at)
    for worker in snapshot.workers:
        if place_of(worker) == place:
            yield from _of_worker(worker, snapshot.at)


def _of_queue(queue: Queue, now: datetime) -> Iterator[Text]:
    counts = ", ".join(f"{jobs_in([queue], state)} {state}" for state, count in queue.jobs.items() if count)
    yield _fact("Queue", flat(f"{queue.name}: {counts or 'nothing unfinished'}"))
    if queue.pause is not None:
        yield _fact("Paused", flat(f"{how_long(queue.pause, now)}, {by_whom(queue.pause)}", "yellow"))


def _of_worker(worker: Session, now: datetime) -> Iterator[Text]:
    state = flat("alive", "green") if worker.alive else flat("lost", "bold red")
    yield _fact("Worker", Text.assemble(flat(worker.name), ", ", state, f", started {ago(worker.started_at, now)}"))
    yield _fact("Queues", flat(", ".join(worker.queues)))
    yield _fact("Tasks", flat(", ".join(worker.tasks)))


def of_job(detail: Detail, now: datetime) -> Iterator[Text]:
    """Yield what there is to say of a job, but for its log."""
    job = detail.job
    yield _fact("Job", flat(f"{job.task}  {job.id}"))
    wish = "" if job.wish is None else f", asked to {job.wish}"
    yield _fact("State", Text.assemble(state_of(job), flat(f", {when(job, now)}{wish}")))
    yield _fact("Queue", flat(f"{job.queue}, priority {job.priority}{f', key {job.key}' if job.key else ''}"))
    if job.progress is not None:
        yield _fact("Progress", Text.assemble(bar(job), "  ", flat(note_of(job), "dim")))
    if job.error is not None:
        yield _fact("Error", flat(error_of(job), "red"))
    for reason in detail.reasons:
        yield _fact("Waits", flat(reason.sentence, "yellow"))
    for attempt in detail.attempts[-_LAST_ATTEMPTS:]:
        took = "" if attempt.duration is None else f", took {span(attempt.duration)}"
        where = f" on {attempt.worker}" if attempt.worker else ""
        yield _fact(
            "Attempt",
            flat(f"{attempt.number} {attempt.outcome or 'running'}, {ago(attempt.started_at, now)}{took}{where}"),
        )


def log_line(line: LogEntry) -> Text:
    """Return a line of a job's log, on one line."""
    time, style = line.at.astimezone().strftime("%H:%M:%S"), COLOURS.get(line.level, "")
    return Text.assemble((f"{time}  ", "dim"), (f"{line.level:8}  ", style), flat(message_of(line), style), end="")


def _fact(name: str, value: Text) -> Text:
    return Text.assemble((f"{name:10}", "bold"), value, no_wrap=True, end="")
