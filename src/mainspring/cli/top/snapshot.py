"""What the screen shows, as it was at one moment, and who looks for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, TypeVar

from mainspring.app import Mainspring
from mainspring.cli.apps import App
from mainspring.cli.ids import Handle
from mainspring.cli.jobs.told import told
from mainspring.cli.top.rates import Rates, rates_of
from mainspring.clock import Clock
from mainspring.documents.told import ToldJob
from mainspring.errors import JobNotFound
from mainspring.explain import Reason
from mainspring.model.attempt import Attempt
from mainspring.model.job import JobState
from mainspring.model.journal import LogEntry
from mainspring.model.queue import Queue
from mainspring.model.session import Session

T = TypeVar("T")

_MOST = 100
_MOST_LINES = 1_000
_SHARE = 0.1
"""Of the time, for each part: what takes half a second to find is looked for every five."""


@dataclass(frozen=True)
class Place:
    """Something that can be opened: a queue by its name, a worker or a job by its id."""

    kind: str
    key: str


@dataclass(frozen=True)
class Detail:
    """One job, with what its attempts came to, the end of what it has logged, and why it does not run."""

    job: ToldJob
    attempts: Sequence[Attempt] = ()
    lines: Sequence[LogEntry] = ()
    reasons: Sequence[Reason] = ()


@dataclass(frozen=True)
class Snapshot:
    """All that is shown. `jobs` are those of the queue that is open, `detail` is the job that is.

    `counted_at` is when the jobs of the queues were counted, which may be a while ago where there are very many.
    Workers, which work for all teams, are shown to the default team alone: `of_fleet` says whether it is that.
    """

    at: datetime
    counted_at: datetime | None = None
    queues: Sequence[Queue] = ()
    of_fleet: bool = True
    workers: Sequence[Session] = ()
    running: Sequence[ToldJob] = ()
    failures: Sequence[ToldJob] = ()
    rates: Rates | None = None
    place: Place | None = None
    jobs: Sequence[ToldJob] = ()
    detail: Detail | None = None


class Watch:
    """Looks at an app, again and again. What takes long to find is looked for less often; not for many threads."""

    def __init__(self, app: App, clock: Clock, of_fleet: bool = True) -> None:
        self._app = app
        self._of_fleet = of_fleet
        self._clock = clock
        self._queues = _Part(clock, lambda: (_counted(app), clock.now()))
        self._workers = _Part(clock, app.workers)
        self._running = _Part(clock, lambda: _seen(app.jobs(state=JobState.RUNNING, limit=_MOST)))
        self._failures = _Part(clock, lambda: _latest(app.dead.list(limit=_MOST)))
        self._rates = _Part(clock, lambda: rates_of(app.history("1h"), clock.now()))
        self._place: Place | None = None
        self._opened: _Part[Snapshot] | None = None

    def look(self, place: Place | None = None) -> Snapshot:
        """Return what is to be seen, with what is at *place*."""
        opened, (queues, counted_at) = self._look_into(place), self._queues.value()
        return Snapshot(
            at=self._clock.now(),
            counted_at=counted_at,
            queues=queues,
            of_fleet=self._of_fleet,
            workers=self._workers.value(),
            running=self._running.value(),
            failures=self._failures.value(),
            rates=self._rates.value(),
            place=place,
            jobs=opened.jobs,
            detail=opened.detail,
        )

    def hurry(self) -> None:
        """Look for everything anew with the next look, because somebody has changed something."""
        for part in (self._queues, self._workers, self._running, self._failures, self._opened):
            if part is not None:
                part.wanted += 1

    def _look_into(self, place: Place | None) -> Snapshot:
        if place != self._place:
            self._place, self._opened = place, None if place is None else _Part(self._clock, self._opener(place))
        return Snapshot(self._clock.now()) if self._opened is None else self._opened.value()

    def _opener(self, place: Place) -> Callable[[], Snapshot]:
        if place.kind == "job":
            follower = _Follower(self._app, place.key)
            return lambda: Snapshot(self._clock.now(), detail=follower.look())
        if place.kind == "queue":
            return lambda: Snapshot(self._clock.now(), jobs=_seen(self._app.jobs(queue=place.key, limit=_MOST)))
        return lambda: Snapshot(self._clock.now())


@dataclass
class _Part(Generic[T]):
    """One thing to look for, and what was found last.

    Whoever wants it anew adds to `wanted`, also while somebody looks, who may have seen what was before: only a look
    that begins later is an answer.
    """

    clock: Clock
    ask: Callable[[], T]
    due: float = 0.0
    wanted: int = 0
    answered: int = 0
    found: list[T] = field(default_factory=list)

    def value(self) -> T:
        begun, wanted = self.clock.steady(), self.wanted
        if begun >= self.due or wanted != self.answered or not self.found:
            self.found[:] = [self.ask()]
            self.due, self.answered = begun + (self.clock.steady() - begun) / _SHARE, wanted
        return self.found[0]


class _Follower:
    """Follows one job. Of its log only what is new is asked for."""

    def __init__(self, app: App, job_id: str) -> None:
        self._app = app
        self._id = job_id
        self._after = (0, 0)
        self._lines: deque[LogEntry] = deque(maxlen=_MOST_LINES)

    def look(self) -> Detail | None:
        """Return how it is; None if it is not there any more."""
        try:
            job = self._app.job(self._id)
        except JobNotFound:
            return None
        while page := job.log_page(self._after, _MOST_LINES):
            self._lines.extend(page)
            self._after = page[-1].fence, page[-1].number
        seen = told(job)
        return Detail(seen, job.attempts(), list(self._lines), [] if seen.state.final else job.explain())


def _counted(app: App) -> Sequence[Queue]:
    """Return the queues, with no more of their jobs counted than takes no time, as a server does by itself."""
    return app.queues.list(quick=True) if isinstance(app, Mainspring) else app.queues.list()


def _seen(jobs: Sequence[Handle]) -> list[ToldJob]:
    return [told(job) for job in jobs]


def _latest(jobs: Sequence[Handle]) -> list[ToldJob]:
    """Return dead letters, what failed last first: an old job may have failed just now."""
    return sorted(_seen(jobs), key=lambda job: job.finished_at or job.created_at, reverse=True)
