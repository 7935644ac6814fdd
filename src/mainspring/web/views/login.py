"""Log in by a token, choose a team, and log out."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from mainspring.api.policy import needs
from mainspring.api.problems import Problem
from mainspring.app import Mainspring
from mainspring.model.team import check_team
from mainspring.model.token import Role
from mainspring.web import session
from mainspring.web.forms import Form, read_form
from mainspring.web.look import render
from mainspring.web.pages import HEADERS, LOGIN, Pages, Visit

pages = Pages()
ANYBODY = needs(Role.VIEWER)


def mount(api: FastAPI) -> None:
    """Add what is open to who is not logged in yet, and can't be one of the pages that are for the others only."""
    api.router.routes.append(Route(LOGIN, _show, methods=["GET"]))
    api.router.routes.append(Route(LOGIN, _log_in, methods=["POST"]))


async def _show(request: Request) -> Response:
    return _form(request)


async def _log_in(request: Request) -> Response:
    try:
        session.check_visit(request, "somebody")
        form = await read_form(request)
    except Problem as problem:
        return _form(request, str(problem.detail), problem.status_code)
    app: Mainspring = request.app.state.app
    if await asyncio.to_thread(app.tokens.verify, form["token"]) is None:
        return _form(request, "expected a token that is known, not revoked and not expired", 401)
    answer = RedirectResponse(_here(form), 303)
    session.keep(answer, request, session.TOKEN, form["token"])
    session.forget(answer, session.TEAM)
    return answer


@pages.post("/logout", ANYBODY)
def log_out(visit: Visit) -> Response:
    answer = visit.go(LOGIN)
    session.forget(answer, session.TOKEN)
    session.forget(answer, session.TEAM)
    return answer


@pages.post("/team", ANYBODY)
def choose_team(visit: Visit) -> Response:
    """Look at what is another team's. Whether he may is asked by the next page."""
    name = visit.form["team"]
    check_team(name)
    answer = visit.go("/")
    session.keep(answer, visit.request, session.TEAM, name)
    return answer


def _form(request: Request, wrong: str | None = None, status: int = 200) -> Response:
    wanted = request.query_params.get("next", "/")
    page = render("login.html", visit=None, team=None, said=None, proof="", path=LOGIN, wrong=wrong, wanted=wanted)
    return Response(page, status, HEADERS, "text/html")


def _here(form: Form) -> str:
    """Return where to go then: an address of this site, whatever a link may have asked for."""
    wanted = form["next"] or "/"
    if not wanted.startswith("/") or wanted.startswith(("//", "/\\")) or urlsplit(wanted).netloc:
        return "/"
    return wanted
