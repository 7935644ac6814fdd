"""The dashboard as a whole: all its pages, what they load, and the streams that keep them up to date."""

from __future__ import annotations

from importlib.resources import files

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mainspring.web.look import offer
from mainspring.web.pages import Pages
from mainspring.web.views import jobs, live, login, overview, schedule_form, schedules

PAGES: tuple[Pages, ...] = (overview.pages, jobs.pages, schedule_form.pages, schedules.pages, login.pages)

_KINDS = {"style.css": "text/css", "live.js": "text/javascript", "mark.svg": "image/svg+xml"}


def mount(api: FastAPI) -> None:
    """Serve the dashboard beside *api*, which lets in whom it would."""
    offer([path for pages in PAGES for method, path, _, _ in pages.made if method == "GET" and "{" not in path])
    for pages in PAGES:
        pages.mount(api)
    login.mount(api)
    live.mount(api)
    api.router.routes.append(Route("/static/{name}", _static, methods=["GET"]))


async def _static(request: Request) -> Response:
    """Return a file of ours: one of those that are known by name, so that no path leads anywhere else."""
    name = request.path_params["name"]
    if name not in _KINDS:
        return Response("there is nothing at this address", 404, media_type="text/plain")
    content = (files("mainspring.web") / "static" / name).read_bytes()
    return Response(content, 200, {"Cache-Control": "max-age=300"}, _KINDS[name])
