"""Events: a job, or all jobs of a team, followed as they change, by server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any
from uuid import UUID

import msgspec
from fastapi import Request
from starlette.datastructures import State
from starlette.responses import Response, StreamingResponse

from mainspring.api.callers import Asking, Caller, Gate
from mainspring.api.crowd import Crowd
from mainspring.api.policy import needs
from mainspring.api.routing import Routes
from mainspring.api.stream import Stream
from mainspring.api.watch import Watch
from mainspring.documents.changes import change_document
from mainspring.documents.jobs import job_document
from mainspring.model.job import Job
from mainspring.model.token import Role

routes = Routes("events")

HEARTBEAT = 0.5
"""Seconds: as often it is asked whether the token still lets its holder in. Every so often a sign of life is sent."""

_BEATS_TO_A_SIGN = 20
_MEDIA_TYPE = "text/event-stream"


@routes.get("/jobs/{job_id}/events", needs(Role.VIEWER), media_type=_MEDIA_TYPE, problems=(429,))
async def follow_job(request: Request, caller: Asking, job_id: UUID) -> Response:
    """Follow a job: an event `job` with all of it now, and whenever it has changed, until it has finished."""
    return await job_stream(request.app.state, caller, job_id)


@routes.get("/events", needs(Role.VIEWER), media_type=_MEDIA_TYPE, problems=(429,))
async def follow_all(request: Request, caller: Asking) -> Response:
    """Follow the jobs of the team.

    An event `listening` tells that all is told from now on. An event `change` tells that a job was created, started,
    attempted without coming to an end, or finished. An event `skipped` tells that there were more changes than were
    sent: list the jobs to be up to date.
    """
    return team_stream(request.app.state, caller)


async def job_stream(state: State, caller: Caller, job_id: UUID) -> Response:
    """Return the answer that tells of each change of a job."""
    job = await asyncio.to_thread(caller.app.client.get, job_id)
    return _events(state.followers, caller, _job_events(state.gate, caller, state.watch, job))


def team_stream(state: State, caller: Caller) -> Response:
    """Return the answer that tells of each change of the team's jobs."""
    return _events(state.followers, caller, _team_events(state.gate, caller, state.stream))


async def _counted(followers: Crowd, caller: Caller, events: AsyncGenerator[bytes]) -> AsyncIterator[bytes]:
    """Yield *events*, counted from the first on: a stream that nobody begins to read is none."""
    with followers.joined(caller.actor):
        async with aclosing(events):
            async for event in events:
                yield event


async def _job_events(gate: Gate, caller: Caller, watch: Watch, job: Job) -> AsyncGenerator[bytes]:
    async with aclosing(watch.follow(caller.app.client, job)) as changes:
        following = aiter(changes)
        news: asyncio.Future[Job] = asyncio.ensure_future(anext(following))
        try:
            beats = 0
            while await gate.still_lets_in(caller):
                done, _ = await asyncio.wait([news], timeout=HEARTBEAT)
                beats += 1
                if done:
                    yield _event("job", job_document(news.result(), caller.keys))
                    news = asyncio.ensure_future(anext(following))
                elif beats % _BEATS_TO_A_SIGN == 0:
                    yield b": still here\n\n"
        except StopAsyncIteration:
            return
        finally:
            news.cancel()
            await asyncio.wait([news])


async def _team_events(gate: Gate, caller: Caller, stream: Stream) -> AsyncGenerator[bytes]:
    listener = stream.open(caller.app.client.team)
    try:
        said = False
        beats = 0
        while not listener.closed and await gate.still_lets_in(caller):
            changes, skipped = await listener.take(HEARTBEAT)
            beats += 1
            if listener.begun and not said:
                said = True
                yield _event("listening", {})
            if skipped:
                yield _event("skipped", {})
            if changes:
                yield b"".join(_event("change", change_document(change)) for change in changes)
            elif beats % _BEATS_TO_A_SIGN == 0:
                yield b": still here\n\n"
    finally:
        stream.leave(listener)


def _events(followers: Crowd, caller: Caller, events: AsyncGenerator[bytes]) -> Response:
    followers.check(caller.actor)
    # A proxy that gathers what it passes on would keep them for itself.
    headers = {"X-Accel-Buffering": "no"}
    return StreamingResponse(_counted(followers, caller, events), media_type=_MEDIA_TYPE, headers=headers)


def _event(kind: str, document: Mapping[str, Any]) -> bytes:
    """Return one event: JSON has no line ends that could end it early."""
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), msgspec.json.encode(document))
