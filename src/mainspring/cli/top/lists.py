"""The lists of the screen: queues, workers and jobs, each as a row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from rich.text import Text

from mainspring.cli.ids import short
from mainspring.cli.jobs.look import COLOURS, how_far, state_of, when
from mainspring.cli.output import ascii_only
from mainspring.cli.times import ago, since, span
from mainspring.cli.top.grid import Column, Grid, flat
from mainspring.cli.top.screen import Panel
from mainspring.cli.top.snapshot import Snapshot
from mainspring.documents.told import ToldJob
from mainspring.model.job import JobState
from mainspring.model.queue import Queue, jobs_in
from mainspring.model.session import Session

LATER = (JobState.SCHEDULED, JobState.RETRYING)
_BAR = 12


def panel_grid(panel: Panel, snapshot: Snapshot) -> Grid:
    """Return what *panel* lists."""
    makers: Mapping[Panel, Callable[[Snapshot], Grid]] = {
        Panel.QUEUES: _queues,
        Panel.WORKERS: _workers,
        Panel.RUNNING: _running,
        Panel.FAILURES: _failures,
    }
    return makers[panel](snapshot)


def jobs_grid(jobs: Sequence[ToldJob], snapshot: Snapshot) -> Grid:
    """Return *jobs* in whatever state."""
    columns = (
        Column("", most=28),
        Column("Id", spare=2),
        Column("State"),
        Column("Att.", right=True, spare=3),
        Column("When", right=True),
        Column("Progress or error", rest=True),
    )
    rows = [
        [
            flat(job.task),
            flat(short(job.id), "dim"),
            state_of(job),
            flat(job.attempt),
            flat(when(job, snapshot.at)),
            flat(error_of(job), "red") if job.error else bar(job),
        ]
        for job in jobs
    ]
    return Grid(columns, rows)


def bar(job: ToldJob) -> Text:
    """Return how far *job* is, drawn where it has said of how much."""
    reached = job.progress
    if reached is None:
        return Text()
    far = how_far(reached)
    if not reached.total:
        return flat(far)
    full = round(max(0.0, min(1.0, reached.done / reached.total)) * _BAR)
    done, left = ("#", ".") if ascii_only() else ("█", "░")
    return Text.assemble((done * full, "cyan"), (left * (_BAR - full), "dim"), f" {far:>4}", no_wrap=True, end="")


def note_of(job: ToldJob) -> str:
    """Return what *job* says that it does, or what it was asked to."""
    if job.wish is not None:
        return f"asked to {job.wish}"
    return (job.progress.note if job.progress is not None else None) or ""


def error_of(job: ToldJob) -> str:
    """Return why *job* failed last."""
    failure = job.error
    return "" if failure is None else f"{failure.type.rpartition('.')[2]}: {failure.message}"


def _queues(snapshot: Snapshot) -> Grid:
    columns = (
        Column("", rest=True),
        Column("Ready", right=True),
        Column("Running", right=True),
        Column("Later", right=True),
        Column("Blocked", right=True, spare=2),
        Column("Oldest", right=True),
        Column("Workers", right=True, spare=3),
        Column("State", spare=1),
    )
    return Grid(columns, [list(_queue(queue)) for queue in snapshot.queues])


def _queue(queue: Queue) -> Iterator[Text]:
    yield flat(queue.name)
    for states in ((JobState.READY,), (JobState.RUNNING,), LATER, (JobState.BLOCKED,)):
        count = jobs_in([queue], *states)
        yield flat(count, "dim" if count == "0" else COLOURS[states[0]])
    yield flat("" if queue.oldest_ready is None else span(queue.oldest_ready))
    yield flat(len(queue.workers), "" if queue.workers else "dim")
    unserved = not queue.workers and JobState.READY in queue.jobs
    yield flat("paused", "yellow") if queue.paused else flat("unserved" if unserved else "", "bold red")


def _workers(snapshot: Snapshot) -> Grid:
    columns = (
        Column("", most=28),
        Column("State"),
        Column("Running", right=True),
        Column("Started", right=True, spare=2),
        Column("Last beat", right=True, spare=1),
        Column("Queues", rest=True),
    )
    return Grid(columns, [list(_worker(worker, snapshot)) for worker in snapshot.workers])


def _worker(worker: Session, snapshot: Snapshot) -> Iterator[Text]:
    yield flat(worker.name)
    yield flat("alive", "green") if worker.alive else flat("lost", "bold red")
    yield flat(sum(job.session == worker.id for job in snapshot.running))
    yield flat(ago(worker.started_at, snapshot.at))
    yield flat(ago(worker.beat_at, snapshot.at))
    yield flat(", ".join(worker.queues), "dim")


def _running(snapshot: Snapshot) -> Grid:
    columns = (
        Column("", most=28),
        Column("Id", spare=1),
        Column("Since", right=True),
        Column("Progress"),
        Column("Note", rest=True, least=8),
    )
    rows = [
        [
            flat(job.task),
            flat(short(job.id), "dim"),
            flat("" if job.started_at is None else since(job.started_at, snapshot.at).removeprefix("for ")),
            bar(job),
            flat(note_of(job), "dim"),
        ]
        for job in snapshot.running
    ]
    return Grid(columns, rows)


def _failures(snapshot: Snapshot) -> Grid:
    columns = (
        Column("", most=28),
        Column("Id", spare=1),
        Column("Failed", right=True),
        Column("Error", rest=True),
    )
    rows = [
        [flat(job.task), flat(short(job.id), "dim"), flat(when(job, snapshot.at)), flat(error_of(job), "red")]
        for job in snapshot.failures
    ]
    return Grid(columns, rows)
