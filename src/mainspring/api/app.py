"""The API as one ASGI application."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from anyio import CapacityLimiter
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

import mainspring
from mainspring.api import problems
from mainspring.api.callers import TEAM_HEADER, Gate, Settings
from mainspring.api.creates import Creates
from mainspring.api.crowd import Crowd
from mainspring.api.documents import ProblemDocument
from mainspring.api.policy import policy_of
from mainspring.api.readiness import Readiness
from mainspring.api.recorder import Recorder
from mainspring.api.routes import (
    alerts,
    attempts,
    audit,
    dead,
    events,
    health,
    history,
    jobs,
    limits,
    logs,
    metrics,
    notifications,
    queues,
    retention,
    schedules,
    secrets,
    teams,
    tokens,
    workers,
    workflows,
)
from mainspring.api.routing import Guarded, Routes
from mainspring.api.shell import Shell
from mainspring.api.stream import Stream
from mainspring.api.watch import Watch
from mainspring.app import Mainspring

ROUTES: tuple[Routes, ...] = tuple(
    module.routes
    for module in (
        *(jobs, attempts, events, schedules, workflows, teams, queues, workers, history),
        *(dead, limits, tokens, audit, health, logs, notifications, alerts, secrets, retention, metrics),
    )
)

_MOST_TRIALS = 4
"""How many channels are tried at the same time: each may take as long as a server that never answers."""

_ABOUT = f"""\
Jobs, schedules and workflows over HTTP.

Show a token with `Authorization: Bearer ms_…`. A request is about one team: the one in the header `{TEAM_HEADER}` or in
`?team=`, or else the only one of the token. What is another team's is not there (404). Errors are problem documents
(RFC 9457) that say what was expected and what came.
"""


def make_api(app: Mainspring, settings: Settings | None = None) -> FastAPI:
    """Return the API of *app*, whatever team that is bound to: each request says whose it is."""
    app = app.unbound()
    recorder = Recorder(app)
    creates, stream, watch = Creates(app), Stream(app), Watch(app)

    def hang_up() -> None:
        """Let those go who wait or follow: a server that stops would else wait for them."""
        stream.hang_up()
        watch.close()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        for part in (recorder, creates, stream):
            part.start()
        serving = asyncio.get_running_loop()
        api.state.hang_up = lambda: serving.call_soon_threadsafe(hang_up)
        yield
        hang_up()
        for part in (stream, creates, recorder):
            part.close()

    api = FastAPI(
        title="Mainspring",
        version=mainspring.__version__,
        description=_ABOUT,
        openapi_url=None,
        docs_url=None,  # its page would load scripts from another host
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    api.state.app, api.state.gate = app, Gate(app, settings or Settings(), recorder)
    api.state.creates, api.state.stream, api.state.watch = creates, stream, watch
    api.state.readiness = Readiness(app)
    api.state.followers = Crowd("streams and waits", each=100, most=1_000)
    api.state.trials = Crowd("trials", each=1, most=_MOST_TRIALS)
    api.state.trial_threads = CapacityLimiter(_MOST_TRIALS)
    problems.install(api)
    api.add_middleware(Shell)
    for routes in ROUTES:
        routes.mount(api)
    check_policies(api)
    api.openapi = lambda: _openapi(api)  # type: ignore[method-assign]
    return api


def check_policies(api: FastAPI) -> None:
    """Refuse routes that were made past `Routes`, which lets nobody forget to say who may use them."""
    for route in api.routes:
        if not isinstance(route, Guarded):
            raise TypeError(f"{route!r} is no route that anybody guards; declare it with Routes")
        policy_of(route.endpoint)


def _openapi(api: FastAPI) -> dict[str, Any]:
    if api.openapi_schema is None:
        document = get_openapi(title=api.title, version=api.version, description=api.description, routes=api.routes)
        parts = document.setdefault("components", {})
        parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer", "bearerFormat": "ms_<id>_<secret>"}}
        parts.setdefault("schemas", {}).update(_schemas(ProblemDocument))
        for operations in document["paths"].values():
            for operation in operations.values():
                _own_answers(operation)
        api.openapi_schema = document
    return api.openapi_schema


def _schemas(model: Any) -> dict[str, Any]:
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    return {**schema.pop("$defs", {}), model.__name__: schema}


def _own_answers(operation: dict[str, Any]) -> None:
    """Take out what the framework says of mistakes in requests, which are told as all problems are."""
    for answer in operation["responses"].values():
        content = answer.get("content", {})
        if problems.MEDIA_TYPE in content:
            content.pop("application/json", None)
    if "security" in operation:
        operation.setdefault("parameters", []).append(
            {
                "name": TEAM_HEADER,
                "in": "header",
                "required": False,
                "description": "The team that the request is about.",
                "schema": {"type": "string", "pattern": "^[a-z0-9][a-z0-9-]{0,39}$"},
            }
        )
