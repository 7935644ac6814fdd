"""The dashboard as a whole: all its pages, what they load, and the streams that keep them up to date."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import cast

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from mainspring.api.problems import Problem
from mainspring.web.look import offer
from mainspring.web.pages import Pages, not_there
from mainspring.web.replays import Replays
from mainspring.web.views import (
    alerts,
    audit,
    bulk,
    dead,
    jobs,
    limits,
    live,
    login,
    notifications,
    overview,
    queues,
    schedule_form,
    schedules,
    tokens,
    workers,
    workflows,
)

PAGES: tuple[Pages, ...] = (
    *(overview.pages, jobs.pages, bulk.pages, schedule_form.pages, schedules.pages, workflows.pages, dead.pages),
    *(
        login.pages,
        queues.pages,
        workers.pages,
        limits.pages,
        alerts.pages,
        notifications.pages,
        tokens.pages,
        audit.pages,
    ),
)

_KINDS = {"style.css": "text/css", "live.js": "text/javascript", "mark.svg": "image/svg+xml"}


def mount(api: FastAPI) -> None:
    """Serve the dashboard beside *api*, which lets in whom it would."""
    offer({path: policy for pages in PAGES for method, path, policy, _ in pages.made if method == "GET"})
    api.state.replays = Replays()
    for pages in PAGES:
        pages.mount(api)
    login.mount(api)
    live.mount(api)
    api.router.routes.append(Route("/static/{name}", _static, methods=["GET"]))
    _guide(api)


def leave(api: FastAPI) -> None:
    """End what pages have begun and left under way."""
    api.state.replays.close()


def _guide(api: FastAPI) -> None:
    """Show a page to people who come to an address at which there is nothing; programs are told as before."""
    tell = cast("Callable[[Request, Exception], Awaitable[Response]]", api.exception_handlers[HTTPException])

    async def guide(request: Request, error: HTTPException) -> Response:
        path, for_people = request.url.path, "text/html" in request.headers.get("Accept", "")
        if not for_people or path.startswith("/api/") or isinstance(error, Problem):
            return await tell(request, error)
        if path.endswith("/"):
            # Nothing but a path of this site: `//elsewhere.example/` would lead there.
            return RedirectResponse(f"/{path.strip('/')}", 307)
        return not_there(request)

    api.add_exception_handler(404, guide)  # type: ignore[arg-type]


async def _static(request: Request) -> Response:
    """Return a file of ours: one of those that are known by name, so that no path leads anywhere else."""
    name = request.path_params["name"]
    if name not in _KINDS:
        return Response("there is nothing at this address", 404, media_type="text/plain")
    content = (files("mainspring.web") / "static" / name).read_bytes()
    return Response(content, 200, {"Cache-Control": "max-age=300"}, _KINDS[name])
