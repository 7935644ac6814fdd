"""Streams for pages: the same events as the API has, for whoever shows the token by his cookie."""

from __future__ import annotations

from uuid import UUID

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mainspring.api.callers import Caller
from mainspring.api.policy import needs
from mainspring.api.problems import Problem, problem, told
from mainspring.api.routes.events import job_stream, team_stream
from mainspring.errors import MainspringError
from mainspring.model.token import Role
from mainspring.web import session

_VIEWER = needs(Role.VIEWER)


def mount(api: FastAPI) -> None:
    api.router.routes.append(Route("/live", _follow, methods=["GET"]))
    api.router.routes.append(Route("/live/{job_id:uuid}", _follow, methods=["GET"]))


async def _follow(request: Request) -> Response:
    state = request.app.state
    try:
        token = session.token_of(request)
        caller: Caller = await state.gate.admit_shown(token, _VIEWER, session.teams_of(request))
        session.check_visit(request, token)
        job_id: UUID | None = request.path_params.get("job_id")
        return team_stream(state, caller) if job_id is None else await job_stream(state, caller, job_id)
    except Problem as refused:
        return problem(refused.status_code, refused.code, str(refused.detail), **refused.more)
    except MainspringError as error:
        return told(error)
