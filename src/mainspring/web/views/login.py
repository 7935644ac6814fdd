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
from mainspring.model.team import DEFAULT_TEAM, check_team
from mainspring.model.token import ALL_TEAMS, Role
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
    token = await asyncio.to_thread(app.tokens.verify, form["token"])
    if token is None:
        wrong = "expected a token that is known, not revoked and not expired"
        return _form(request, wrong, 401, wanted=_here(form))
    answer = RedirectResponse(_here(form), 303)
    session.keep(answer, request, session.TOKEN, form["token"])
    if len(token.grants) > 1 and not token.grants.keys() & {ALL_TEAMS, DEFAULT_TEAM}:
        session.keep(answer, request, session.TEAM, min(token.grants))  # he must begin with one of them
    else:
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
    """Look at what is another team's; who has a role everywhere may choose none again.

    Who may not look at it stays where he is, for no page would let him go back.
    """
    name, token = visit.form["team"], visit.caller.token
    answer = visit.go("/")
    if visit.caller.everywhere and name in ("", ALL_TEAMS):
        session.forget(answer, session.TEAM)
        return answer
    check_team(name)
    shown = None if token is None else visit.app.tokens.verify(token)
    if shown is not None and shown.role_in(name) is None:
        return visit.go("/", f"Nothing is known of a team named {name}; this is {visit.caller.team}.")
    session.keep(answer, visit.request, session.TEAM, name)
    return answer


def _form(request: Request, wrong: str | None = None, status: int = 200, wanted: str | None = None) -> Response:
    wanted = wanted or request.query_params.get("next", "/")
    page = render("login.html", visit=None, team=None, said=None, proof="", path=LOGIN, wrong=wrong, wanted=wanted)
    return Response(page, status, HEADERS, "text/html")


def _here(form: Form) -> str:
    """Return where to go then: an address of this site, whatever a link may have asked for."""
    wanted = form["next"] or "/"
    if not wanted.startswith("/") or wanted.startswith(("//", "/\\")) or urlsplit(wanted).netloc:
        return "/"
    return wanted
