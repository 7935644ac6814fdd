"""The clients: the names of the app, asked of a server."""

from __future__ import annotations

import builtins
import re
from collections.abc import AsyncGenerator, Generator, Iterable, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from types import TracebackType
from typing import Any, Self, TypedDict, Unpack
from uuid import UUID

from mainspring.client import Match
from mainspring.documents.told import ToldJob, ToldWorkflow
from mainspring.errors import InvalidValue
from mainspring.job_handle import id_of
from mainspring.model.channel import Channel
from mainspring.model.job import JobState
from mainspring.model.team import check_team
from mainspring.remote import calls, parts, platform
from mainspring.remote.changes import Change, Skipped
from mainspring.remote.talk import AsyncLine, Awaited, Line, Spoken, awaited, awaited_of_it, said, said_of_it
from mainspring.task_handle import Wishes

_TIMEOUT = 30.0
_TOKEN = re.compile(r"[!-~]+")


class Listed(Match, total=False):
    """Which jobs to list."""

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

    def __init__(self, line: Line, job_id: UUID, seen: ToldJob | None = None) -> None:
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
    def snapshot(self) -> ToldJob:
        """The job as it was when it was last looked at."""
        return self._seen or self.refresh()

    def refresh(self) -> ToldJob:
        """Look at the job again, and return it as it is."""
        self._seen = self._speak(calls.job(self.id))
        return self._seen

    def follow(self) -> Generator[ToldJob, None, None]:
        """Yield the job as it is now, and whenever it has changed, until it has finished."""
        for event in self._line.follow(f"jobs/{self.id}/events"):
            self._seen = calls.job_of(event.told)
            yield self._seen

    result = said_of_it(calls.result)
    cancel = said_of_it(calls.cancel)
    pause = said_of_it(calls.pause)
    resume = said_of_it(calls.resume)
    replay = said_of_it(calls.replay)
    signal = said_of_it(calls.signal)
    attempts = said_of_it(calls.attempts)
    logs = said_of_it(calls.logs)
    log_page = said_of_it(calls.log_page)
    steps = said_of_it(calls.steps)
    explain = said_of_it(calls.explain)


class AsyncRemoteJob(Awaited):
    """A job of the server, awaited."""

    def __init__(self, line: AsyncLine, job_id: UUID, seen: ToldJob | None = None) -> None:
        super().__init__(line)
        self.id = job_id
        self._seen = seen

    def __repr__(self) -> str:
        return f"<remote job {self.id}>"

    async def state(self) -> JobState:
        """Return the state it is in now."""
        return (await self.refresh()).state

    async def snapshot(self) -> ToldJob:
        """Return the job as it was when it was last looked at."""
        return self._seen or await self.refresh()

    async def refresh(self) -> ToldJob:
        """Look at the job again, and return it as it is."""
        self._seen = await self._speak(calls.job(self.id))
        return self._seen

    async def follow(self) -> AsyncGenerator[ToldJob, None]:
        """Yield the job as it is now, and whenever it has changed, until it has finished."""
        async with aclosing(self._line.follow(f"jobs/{self.id}/events")) as events:
            async for event in events:
                self._seen = calls.job_of(event.told)
                yield self._seen

    result = awaited_of_it(calls.result)
    cancel = awaited_of_it(calls.cancel)
    pause = awaited_of_it(calls.pause)
    resume = awaited_of_it(calls.resume)
    replay = awaited_of_it(calls.replay)
    signal = awaited_of_it(calls.signal)
    attempts = awaited_of_it(calls.attempts)
    logs = awaited_of_it(calls.logs)
    log_page = awaited_of_it(calls.log_page)
    steps = awaited_of_it(calls.steps)
    explain = awaited_of_it(calls.explain)


class RemoteWorkflow(RemoteJob):
    """A workflow of the server. What is done to it is done to its jobs."""

    def __repr__(self) -> str:
        return f"<remote workflow {self.id}>"

    @property
    def snapshot(self) -> ToldWorkflow:
        """The workflow as it was when it was last looked at."""
        return self._seen if isinstance(self._seen, ToldWorkflow) else self.refresh()

    def refresh(self) -> ToldWorkflow:
        """Look at the workflow again, and return it as it is."""
        self._seen = whole = self._speak(calls.workflow(self.id))
        return whole

    progress = said_of_it(calls.progress)
    picture = said_of_it(calls.picture)

    def jobs(self) -> list[RemoteJob]:
        """Return its jobs, oldest first; of a workflow within it, that one only."""
        return [RemoteJob(self._line, job.id, job) for job in self._speak(calls.members(self.id))]


class AsyncRemoteWorkflow(AsyncRemoteJob):
    """A workflow of the server, awaited."""

    def __repr__(self) -> str:
        return f"<remote workflow {self.id}>"

    async def snapshot(self) -> ToldWorkflow:
        """Return the workflow as it was when it was last looked at."""
        return self._seen if isinstance(self._seen, ToldWorkflow) else await self.refresh()

    async def refresh(self) -> ToldWorkflow:
        """Look at the workflow again, and return it as it is."""
        self._seen = whole = await self._speak(calls.workflow(self.id))
        return whole

    progress = awaited_of_it(calls.progress)
    picture = awaited_of_it(calls.picture)

    async def jobs(self) -> list[AsyncRemoteJob]:
        """Return its jobs, oldest first; of a workflow within it, that one only."""
        return [AsyncRemoteJob(self._line, job.id, job) for job in await self._speak(calls.members(self.id))]


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
    set = said(platform.set_queue)
    give = said(platform.give_queue)


class AsyncRemoteQueues(Awaited):
    """The queues of the server, awaited."""

    list = awaited(calls.queues)
    pause = awaited(calls.pause_queue)
    resume = awaited(calls.resume_queue)
    set = awaited(platform.set_queue)
    give = awaited(platform.give_queue)


class RemoteDead(Spoken):
    """The dead letters of the server."""

    groups = said(calls.groups)
    count = said(calls.count_dead)
    meant = said(calls.meant)
    replay = said(calls.replay_dead)
    discard = said(calls.discard)

    def list(self, **match: Unpack[DeadMatch]) -> builtins.list[RemoteJob]:
        """Return dead letters, newest job first; pass the last one's id as *before* for the next page."""
        return [RemoteJob(self._line, job.id, job) for job in self._speak(calls.jobs("dead", match))]


class AsyncRemoteDead(Awaited):
    """The dead letters of the server, awaited."""

    groups = awaited(calls.groups)
    count = awaited(calls.count_dead)
    meant = awaited(calls.meant)
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
        self.tokens = parts.RemoteTokens(self._line)
        self.secrets = parts.RemoteSecrets(self._line)
        self.alerts = parts.RemoteAlerts(self._line)
        self.notifications = parts.RemoteNotifications(self._line)
        self.retention = parts.RemoteRetention(self._line)
        self.audit = parts.RemoteAudit(self._line)
        self.teams = parts.RemoteTeams(self._line)
        self.paused_tasks = parts.RemotePausedTasks(self._line)
        self.limits = parts.RemoteLimits(self._line)
        self.breakers = parts.RemoteBreakers(self._line)

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

    def jobs(self, **match: Unpack[Listed]) -> list[RemoteJob]:
        """Return jobs, newest first; pass the last one's id as *before* for the next page."""
        return [RemoteJob(self._line, job.id, job) for job in self._speak(calls.find_jobs(match))]

    def signal(self, job: RemoteJob | UUID | str, name: str, value: object = None) -> None:
        """Send a signal to a job, which takes it now or when it comes to that."""
        self._speak(calls.signal(job.id if isinstance(job, RemoteJob) else id_of(job), name, value))

    history = said(platform.history)
    logs = said(platform.logs)
    workers = said(platform.workers)
    of_fleet = said(platform.of_fleet)

    def enqueue_workflow(
        self,
        name: str,
        nodes: Sequence[Mapping[str, Any]],
        *,
        output: str | None = None,
        key: str | None = None,
        notify: Sequence[Channel] = (),
    ) -> RemoteWorkflow:
        """Enqueue a workflow of *nodes*, as `POST /workflows` takes them, with all its jobs, all or none."""
        made = self._speak(calls.enqueue_workflow(name, nodes, output=output, key=key, notify=notify))
        return RemoteWorkflow(self._line, made.id, made)

    def get_workflow(self, job_id: UUID | str) -> RemoteWorkflow:
        """Return the workflow with this id, which must exist."""
        found = self._speak(calls.workflow(job_id))
        return RemoteWorkflow(self._line, found.id, found)

    def workflows(self, before: UUID | str | None = None, limit: int = 50) -> list[RemoteWorkflow]:
        """Return workflows that are part of none, newest first; pass the last one's id as *before* for more."""
        return [RemoteWorkflow(self._line, one.id, one) for one in self._speak(calls.workflows(before, limit))]

    def follow(self) -> Generator[Change | Skipped, None, None]:
        """Yield what happens to the team's jobs from now on, until the server ends it."""
        for event in self._line.follow("events"):
            if (change := calls.change_of(event)) is not None:
                yield change


class AsyncClient(Awaited):
    """The same, awaited."""

    def __init__(self, url: str, token: str | None = None, team: str | None = None, timeout: float = _TIMEOUT) -> None:
        super().__init__(AsyncLine(url, _headers(token, team), timeout))
        self.schedules = AsyncRemoteSchedules(self._line)
        self.queues = AsyncRemoteQueues(self._line)
        self.dead = AsyncRemoteDead(self._line)
        self.tokens = parts.AsyncRemoteTokens(self._line)
        self.secrets = parts.AsyncRemoteSecrets(self._line)
        self.alerts = parts.AsyncRemoteAlerts(self._line)
        self.notifications = parts.AsyncRemoteNotifications(self._line)
        self.retention = parts.AsyncRemoteRetention(self._line)
        self.audit = parts.AsyncRemoteAudit(self._line)
        self.teams = parts.AsyncRemoteTeams(self._line)
        self.paused_tasks = parts.AsyncRemotePausedTasks(self._line)
        self.limits = parts.AsyncRemoteLimits(self._line)
        self.breakers = parts.AsyncRemoteBreakers(self._line)

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

    async def jobs(self, **match: Unpack[Listed]) -> list[AsyncRemoteJob]:
        """Return jobs, newest first; pass the last one's id as *before* for the next page."""
        return [AsyncRemoteJob(self._line, job.id, job) for job in await self._speak(calls.find_jobs(match))]

    async def signal(self, job: AsyncRemoteJob | UUID | str, name: str, value: object = None) -> None:
        """Send a signal to a job, which takes it now or when it comes to that."""
        await self._speak(calls.signal(job.id if isinstance(job, AsyncRemoteJob) else id_of(job), name, value))

    history = awaited(platform.history)
    logs = awaited(platform.logs)
    workers = awaited(platform.workers)
    of_fleet = awaited(platform.of_fleet)

    async def enqueue_workflow(
        self,
        name: str,
        nodes: Sequence[Mapping[str, Any]],
        *,
        output: str | None = None,
        key: str | None = None,
        notify: Sequence[Channel] = (),
    ) -> AsyncRemoteWorkflow:
        """Enqueue a workflow of *nodes*, as `POST /workflows` takes them, with all its jobs, all or none."""
        made = await self._speak(calls.enqueue_workflow(name, nodes, output=output, key=key, notify=notify))
        return AsyncRemoteWorkflow(self._line, made.id, made)

    async def get_workflow(self, job_id: UUID | str) -> AsyncRemoteWorkflow:
        """Return the workflow with this id, which must exist."""
        found = await self._speak(calls.workflow(job_id))
        return AsyncRemoteWorkflow(self._line, found.id, found)

    async def workflows(self, before: UUID | str | None = None, limit: int = 50) -> list[AsyncRemoteWorkflow]:
        """Return workflows that are part of none, newest first; pass the last one's id as *before* for more."""
        return [
            AsyncRemoteWorkflow(self._line, one.id, one) for one in await self._speak(calls.workflows(before, limit))
        ]

    async def follow(self) -> AsyncGenerator[Change | Skipped, None]:
        """Yield what happens to the team's jobs from now on, until the server ends it."""
        async with aclosing(self._line.follow("events")) as events:
            async for event in events:
                if (change := calls.change_of(event)) is not None:
                    yield change


def _headers(token: str | None, team: str | None) -> dict[str, str]:
    if token is not None and (not isinstance(token, str) or not _TOKEN.fullmatch(token)):
        # Not shown, for it may be one but for a line end behind it.
        raise InvalidValue("expected a token such as 'ms_…', in ASCII and without spaces, got something else")
    if team is not None:
        check_team(team)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return headers if team is None else {**headers, "Mainspring-Team": team}
