"""The clients: the names of the app, asked of a server."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self, TypedDict, Unpack
from uuid import UUID

from mainspring.errors import InvalidValue
from mainspring.job_handle import id_of
from mainspring.model.job import JobState
from mainspring.model.team import check_team
from mainspring.remote import calls
from mainspring.remote.documents import Job
from mainspring.remote.talk import AsyncLine, Awaited, Line, Spoken, awaited, awaited_of_it, said, said_of_it
from mainspring.task_handle import Wishes

_TIMEOUT = 30.0
_TOKEN = re.compile(r"[!-~]+")


class Match(TypedDict, total=False):
    """Which jobs to list."""

    state: JobState | str | None
    queue: str | None
    task: str | None
    key: str | None
    before: UUID | str | None
    limit: int


class DeadMatch(TypedDict, total=False):
    """Which dead letters to list."""

    group: str | None
    queue: str | None
    task: str | None
    before: UUID | str | None
    limit: int


class RemoteJob(Spoken):
    """A job of the server."""

    def __init__(self, line: Line, job_id: UUID, seen: Job | None = None) -> None:
        super().__init__(line)
        self.id = job_id
        self._seen = seen

    def __repr__(self) -> str:
        return f"<remote job {self.id}>"

    @property
    def state(self) -> JobState:
        """The state it is in now: every look asks the server."""
        return self.refresh().state

    @property
    def snapshot(self) -> Job:
        """The job as it was when it was last looked at."""
        return self._seen or self.refresh()

    def refresh(self) -> Job:
        """Look at the job again, and return it as it is."""
        self._seen = self._speak(calls.job(self.id))
        return self._seen

    result = said_of_it(calls.result)
    cancel = said_of_it(calls.cancel)
    pause = said_of_it(calls.pause)
    resume = said_of_it(calls.resume)
    replay = said_of_it(calls.replay)
    signal = said_of_it(calls.signal)
    attempts = said_of_it(calls.attempts)
    logs = said_of_it(calls.logs)
    steps = said_of_it(calls.steps)
    explain = said_of_it(calls.explain)


class AsyncRemoteJob(Awaited):
    """A job of the server, awaited."""

    def __init__(self, line: AsyncLine, job_id: UUID, seen: Job | None = None) -> None:
        super().__init__(line)
        self.id = job_id
        self._seen = seen

    def __repr__(self) -> str:
        return f"<remote job {self.id}>"

    async def state(self) -> JobState:
        """Return the state it is in now."""
        return (await self.refresh()).state

    async def snapshot(self) -> Job:
        """Return the job as it was when it was last looked at."""
        return self._seen or await self.refresh()

    async def refresh(self) -> Job:
        """Look at the job again, and return it as it is."""
        self._seen = await self._speak(calls.job(self.id))
        return self._seen

    result = awaited_of_it(calls.result)
    cancel = awaited_of_it(calls.cancel)
    pause = awaited_of_it(calls.pause)
    resume = awaited_of_it(calls.resume)
    replay = awaited_of_it(calls.replay)
    signal = awaited_of_it(calls.signal)
    attempts = awaited_of_it(calls.attempts)
    logs = awaited_of_it(calls.logs)
    steps = awaited_of_it(calls.steps)
    explain = awaited_of_it(calls.explain)


class RemoteSchedules(Spoken):
    """The schedules of the server."""

    add = said(calls.put_schedule)
    get = said(calls.get_schedule)
    list = said(calls.schedules)
    pause = said(calls.pause_schedule)
    resume = said(calls.resume_schedule)
    remove = said(calls.remove_schedule)
    preview = said(calls.preview)
    history = said(calls.history)

    def trigger(self, schedule_id: str) -> RemoteJob:
        """Enqueue its job now, out of turn, even when it is paused."""
        (job_id,) = self._speak(calls.fire_schedule(schedule_id, "trigger"))
        return RemoteJob(self._line, job_id)

    def backfill(self, schedule_id: str, start: datetime, end: datetime) -> builtins.list[RemoteJob]:
        """Enqueue jobs for the ticks from *start* until before *end* that are no jobs yet, and return them."""
        made = self._speak(calls.fire_schedule(schedule_id, "backfill", {"start": start, "end": end}))
        return [RemoteJob(self._line, job_id) for job_id in made]


class AsyncRemoteSchedules(Awaited):
    """The schedules of the server, awaited."""

    add = awaited(calls.put_schedule)
    get = awaited(calls.get_schedule)
    list = awaited(calls.schedules)
    pause = awaited(calls.pause_schedule)
    resume = awaited(calls.resume_schedule)
    remove = awaited(calls.remove_schedule)
    preview = awaited(calls.preview)
    history = awaited(calls.history)

    async def trigger(self, schedule_id: str) -> AsyncRemoteJob:
        """Enqueue its job now, out of turn, even when it is paused."""
        (job_id,) = await self._speak(calls.fire_schedule(schedule_id, "trigger"))
        return AsyncRemoteJob(self._line, job_id)

    async def backfill(self, schedule_id: str, start: datetime, end: datetime) -> builtins.list[AsyncRemoteJob]:
        """Enqueue jobs for the ticks from *start* until before *end* that are no jobs yet, and return them."""
        made = await self._speak(calls.fire_schedule(schedule_id, "backfill", {"start": start, "end": end}))
        return [AsyncRemoteJob(self._line, job_id) for job_id in made]


class RemoteQueues(Spoken):
    """The queues of the server."""

    list = said(calls.queues)
    pause = said(calls.pause_queue)
    resume = said(calls.resume_queue)


class AsyncRemoteQueues(Awaited):
    """The queues of the server, awaited."""

    list = awaited(calls.queues)
    pause = awaited(calls.pause_queue)
    resume = awaited(calls.resume_queue)


class RemoteDead(Spoken):
    """The dead letters of the server."""

    groups = said(calls.groups)
    replay = said(calls.replay_dead)
    discard = said(calls.discard)

    def list(self, **match: Unpack[DeadMatch]) -> builtins.list[RemoteJob]:
        """Return dead letters, newest job first; pass the last one's id as *before* for the next page."""
        return [RemoteJob(self._line, job.id, job) for job in self._speak(calls.jobs("dead", match))]


class AsyncRemoteDead(Awaited):
    """The dead letters of the server, awaited."""

    groups = awaited(calls.groups)
    replay = awaited(calls.replay_dead)
    discard = awaited(calls.discard)

    async def list(self, **match: Unpack[DeadMatch]) -> builtins.list[AsyncRemoteJob]:
        """Return dead letters, newest job first; pass the last one's id as *before* for the next page."""
        return [AsyncRemoteJob(self._line, job.id, job) for job in await self._speak(calls.jobs("dead", match))]


class Client(Spoken):
    """An app on a server, by its address and a token: `Client("https://jobs.example", "ms_…")`.

    What was lost on the way is asked again where that does no harm: what only looks, and jobs that are created, which
    are given an idempotency key for it.
    """

    def __init__(self, url: str, token: str | None = None, team: str | None = None, timeout: float = _TIMEOUT) -> None:
        super().__init__(Line(url, _headers(token, team), timeout))
        self.schedules = RemoteSchedules(self._line)
        self.queues = RemoteQueues(self._line)
        self.dead = RemoteDead(self._line)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._line.close()

    def enqueue(
        self,
        task: str,
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
        **wishes: Unpack[Wishes],
    ) -> RemoteJob:
        """Enqueue a job of the task with this name."""
        job = self._speak(calls.enqueue(task, args, kwargs, wishes))
        return RemoteJob(self._line, job.id, job)

    def enqueue_many(
        self, task: str, pairs: Iterable[tuple[Sequence[Any], Mapping[str, Any]]], **wishes: Unpack[Wishes]
    ) -> list[RemoteJob]:
        """Enqueue a job for each pair of arguments by position and by name, up to 1,000, all or none."""
        return [RemoteJob(self._line, job_id) for job_id in self._speak(calls.enqueue_many(task, pairs, wishes))]

    def job(self, job_id: UUID | str) -> RemoteJob:
        """Return the job with this id, which must exist."""
        job = self._speak(calls.job(job_id))
        return RemoteJob(self._line, job.id, job)

    def jobs(self, **match: Unpack[Match]) -> list[RemoteJob]:
        """Return jobs, newest first; pass the last one's id as *before* for the next page."""
        return [RemoteJob(self._line, job.id, job) for job in self._speak(calls.jobs("jobs", match))]

    def signal(self, job: RemoteJob | UUID | str, name: str, value: object = None) -> None:
        """Send a signal to a job, which takes it now or when it comes to that."""
        self._speak(calls.signal(job.id if isinstance(job, RemoteJob) else id_of(job), name, value))


class AsyncClient(Awaited):
    """The same, awaited."""

    def __init__(self, url: str, token: str | None = None, team: str | None = None, timeout: float = _TIMEOUT) -> None:
        super().__init__(AsyncLine(url, _headers(token, team), timeout))
        self.schedules = AsyncRemoteSchedules(self._line)
        self.queues = AsyncRemoteQueues(self._line)
        self.dead = AsyncRemoteDead(self._line)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._line.close()

    async def enqueue(
        self,
        task: str,
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
        **wishes: Unpack[Wishes],
    ) -> AsyncRemoteJob:
        """Enqueue a job of the task with this name."""
        job = await self._speak(calls.enqueue(task, args, kwargs, wishes))
        return AsyncRemoteJob(self._line, job.id, job)

    async def enqueue_many(
        self, task: str, pairs: Iterable[tuple[Sequence[Any], Mapping[str, Any]]], **wishes: Unpack[Wishes]
    ) -> list[AsyncRemoteJob]:
        """Enqueue a job for each pair of arguments by position and by name, up to 1,000, all or none."""
        made = await self._speak(calls.enqueue_many(task, pairs, wishes))
        return [AsyncRemoteJob(self._line, job_id) for job_id in made]

    async def job(self, job_id: UUID | str) -> AsyncRemoteJob:
        """Return the job with this id, which must exist."""
        job = await self._speak(calls.job(job_id))
        return AsyncRemoteJob(self._line, job.id, job)

    async def jobs(self, **match: Unpack[Match]) -> list[AsyncRemoteJob]:
        """Return jobs, newest first; pass the last one's id as *before* for the next page."""
        return [AsyncRemoteJob(self._line, job.id, job) for job in await self._speak(calls.jobs("jobs", match))]

    async def signal(self, job: AsyncRemoteJob | UUID | str, name: str, value: object = None) -> None:
        """Send a signal to a job, which takes it now or when it comes to that."""
        await self._speak(calls.signal(job.id if isinstance(job, AsyncRemoteJob) else id_of(job), name, value))


def _headers(token: str | None, team: str | None) -> dict[str, str]:
    if token is not None and (not isinstance(token, str) or not _TOKEN.fullmatch(token)):
        # Not shown, for it may be one but for a line end behind it.
        raise InvalidValue(
            "expected a token such as 'ms_…', in ASCII and without spaces, got something else; None for none"
        )
    if team is not None:
        check_team(team)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return headers if team is None else {**headers, "Mainspring-Team": team}
