"""Watching jobs: however many clients wait for however many jobs, one query at a time looks at all of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from uuid import UUID

from mainspring.app import Mainspring
from mainspring.client import Client
from mainspring.model.job import Job

_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.25

_GAP, _BURST = 0.05, 10
"""Seconds from look to look in the long run, however many come, and how many looks may be made sooner after a rest."""


class Watch:
    """Tells those who follow a job of each change that it sees. Used from the server's loop only."""

    def __init__(self, app: Mainspring) -> None:
        self._app = app
        self._followers: dict[UUID, set[asyncio.Queue[Job | None]]] = {}
        self._seen: dict[UUID, Job] = {}
        self._looking: asyncio.Task[None] | None = None
        self._pause = _FIRST_PAUSE
        self._paid_until = 0.0  # as if each look took as long as the gap
        self._closed = False

    async def final(self, client: Client, job: Job, patience: float) -> Job:
        """Return *job* when it has finished, or as it is when *patience* is at an end."""
        try:
            async with asyncio.timeout(patience), aclosing(self.follow(client, job)) as changes:
                async for job in changes:
                    if job.state.final:
                        return job
        except TimeoutError:
            pass
        return await asyncio.to_thread(client.get, job.id)

    async def follow(self, client: Client, job: Job) -> AsyncGenerator[Job]:
        """Yield *job* as it is, and whenever it has changed, until it has finished, is gone, or the server stops."""
        if self._closed:
            return
        told: asyncio.Queue[Job | None] = asyncio.Queue()
        self._followers.setdefault(job.id, set()).add(told)
        self._seen.pop(job.id, None)  # by others, perhaps since this one has looked
        self._pause = _FIRST_PAUSE
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        try:
            last = None
            found: Job | None = job
            while found is not None:
                if found != last:
                    yield client.shown(found)
                if found.state.final:
                    return
                last, found = found, await told.get()
        finally:
            self._leave(job.id, told)

    def close(self) -> None:
        """Let all who follow go."""
        self._closed = True
        for followers in self._followers.values():
            for told in followers:
                told.put_nowait(None)
        if self._looking is not None:
            self._looking.cancel()

    def _leave(self, job_id: UUID, told: asyncio.Queue[Job | None]) -> None:
        followers = self._followers[job_id]
        followers.discard(told)
        if not followers:
            del self._followers[job_id]
            self._seen.pop(job_id, None)

    async def _look(self) -> None:
        while self._followers:
            await self._rest()
            self._pause = min(_LONGEST_PAUSE, self._pause * 1.3)
            asked = list(self._followers)  # others may join meanwhile, of whose jobs nothing is found
            try:
                found = await asyncio.to_thread(self._app.client.find, asked)
            except Exception:  # noqa: BLE001 - the database may be back for the next look
                self._pause = _LONGEST_PAUSE
                continue
            for job_id in asked:
                self._tell(job_id, found.get(job_id), self._followers.get(job_id, set()))
        self._looking = None

    async def _rest(self) -> None:
        """Wait for the next look: not for long if somebody has just come, and longer if looks were many lately."""
        now = asyncio.get_running_loop().time()
        self._paid_until = max(self._paid_until, now - _BURST * _GAP) + _GAP
        await asyncio.sleep(max(self._pause, self._paid_until - now))

    def _tell(self, job_id: UUID, job: Job | None, followers: set[asyncio.Queue[Job | None]]) -> None:
        if job is not None and self._seen.get(job_id) == job:
            return
        if job is not None:
            self._seen[job_id] = job
        for told in followers:
            told.put_nowait(job)
