"""Pages: what an address shows or does, and who may see or do it, declared in one place."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from typing import Any
from urllib.parse import quote

import msgspec
from fastapi import FastAPI
from starlette.datastructures import URL
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from mainspring.api.callers import Caller
from mainspring.api.policy import PUBLIC, Policy, Where
from mainspring.api.problems import Problem, told
from mainspring.app import Mainspring
from mainspring.errors import MainspringError, NotFound
from mainspring.model.token import Role
from mainspring.web import session
from mainspring.web.forms import Form, check_plain, read_form
from mainspring.web.look import render

View = Callable[["Visit"], Response | Awaitable[Response]]
"""One that waits for others is a coroutine function; any other has a thread to itself."""

LOGIN = "/login"

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Frame-Options": "DENY",
    # Not none: a browser that may not say where a form comes from sends `Origin: null`, which is taken for elsewhere.
    "Referrer-Policy": "same-origin",
}


@dataclass
class Visit:
    """Somebody who looks at a page, or sends a form."""

    request: Request
    caller: Caller
    form: Form
    path: Mapping[str, Any] = field(default_factory=dict)

    @property
    def app(self) -> Mainspring:
        return self.caller.app

    @property
    def chosen(self) -> str | None:
        """The team that he has chosen; None if he looks at what is his without."""
        return self.caller.team if self.caller.named else None

    def asked(self, name: str) -> str:
        """Return what the address says under *name*; nothing if it does not."""
        return self.request.query_params.get(name, "").strip()

    def may(self, role: str, where: Where = Where.TEAM) -> bool:
        """Return whether he may do what asks for *role*, so that no page shows what is refused."""
        caller = self.caller
        held = {Where.TEAM: caller.role, Where.FLEET: caller.in_fleet, Where.EVERYWHERE: caller.everywhere}[where]
        return held is not None and held.allows(Role(role))

    def sees(self, policy: Policy) -> bool:
        """Return whether he may see the page with this *policy*, so that none leads to what is refused."""
        return policy.role is None or self.may(policy.role, policy.where)

    def show(self, template: str, status: int = 200, **more: object) -> Response:
        """Return the page that *template* makes."""
        words = session.said(self.request)
        page = render(
            template,
            visit=self,
            team=self.caller.team,
            said=words,
            proof=session.proof_of(self.caller.token, self.chosen),
            path=self.request.url.path,
            **more,
        )
        answer = Response(page, status, HEADERS, "text/html")
        session.stay_in(answer, self.request, self.chosen)
        if words:
            session.forget(answer, session.SAID)
        return answer

    def go(self, address: str, words: str = "") -> Response:
        """Return what leads the browser to *address*, where *words* are shown."""
        answer = RedirectResponse(address, 303)
        session.stay_in(answer, self.request, self.chosen)
        if words:
            session.say(answer, self.request, words)
        return answer


class Pages:
    """Pages of one kind of thing. Each must say who may see it: there is no default."""

    def __init__(self) -> None:
        self.made: list[tuple[str, str, Policy, View]] = []

    def get(self, path: str, policy: Policy) -> Callable[[View], View]:
        return self._page("GET", path, policy)

    def post(self, path: str, policy: Policy) -> Callable[[View], View]:
        return self._page("POST", path, policy)

    def mount(self, api: FastAPI) -> None:
        """Add the pages to *api*."""
        for method, path, policy, view in self.made:
            api.router.routes.append(Route(path, _served(policy, view), methods=[method]))

    def _page(self, method: str, path: str, policy: Policy) -> Callable[[View], View]:
        def declare(view: View) -> View:
            self.made.append((method, path, policy, view))
            return view

        return declare


def _served(policy: Policy, view: View) -> Callable[[Request], Awaitable[Response]]:
    async def serve(request: Request) -> Response:
        try:
            visit = await _visit(request, policy)
            answer = await _answer(view, visit)
        except Problem as problem:
            return _refused(request, problem.status_code, str(problem.detail))
        except MainspringError as error:
            answer = told(error)  # which says nothing that is for whoever runs the server only
            return _refused(request, answer.status_code, msgspec.json.decode(answer.body)["detail"])
        # Only a mistake of ours, as in the API: every change is on record before it is made. A form that comes back
        # with what is wrong with it has made none.
        done = policy.records is not None and answer.status_code < 400
        assert visit.caller.recorded or not done, f"{request.url.path} did not record what it did"
        return answer

    return serve


async def _answer(view: View, visit: Visit) -> Response:
    answer = view(visit) if iscoroutinefunction(view) else await asyncio.to_thread(view, visit)
    return answer if isinstance(answer, Response) else await answer


async def _visit(request: Request, policy: Policy) -> Visit:
    token, gate = session.token_of(request), request.app.state.gate
    await gate.check_shown(token)  # a form says for which team it is, but those of strangers are not read
    session.check_visit(request, token)
    form, teams = Form({}), session.teams_of(request)
    if request.method != "GET":
        form = await read_form(request)
        teams = session.proven_teams(form[session.PROOF], token)
    caller = await gate.admit_shown(token, policy, teams)
    check_plain([request.scope["path"], *request.query_params.values()])
    return Visit(request, caller, form, request.path_params)


def is_there(get: Callable[[str], object], name: str) -> bool:
    """Return whether *get* finds something of that name."""
    try:
        get(name)
    except NotFound:
        return False
    return True


def address_of(url: URL) -> str:
    """Return what leads to *url* on this site."""
    return f"{url.path}?{url.query}" if url.query else url.path


def not_there(request: Request) -> Response:
    """Return the page of an address at which there is nothing."""
    return _refused(request, 404, "there is nothing at this address")


def _came_from(request: Request) -> str:
    """Return the page of ours from which a form was sent, as far as the browser tells."""
    page = URL(request.headers.get("Referer", ""))
    return address_of(page) if page.netloc == request.url.netloc else "/"


def _refused(request: Request, status: int, sentence: str) -> Response:
    """Return the page that says what is wrong; of who is not let in, the one to log in by."""
    if status == 401:
        wanted = address_of(request.url) if request.method == "GET" else _came_from(request)
        answer: Response = RedirectResponse(f"{LOGIN}?next={quote(wanted)}", 303)
        session.forget(answer, session.TOKEN)
        return answer
    page = render("problem.html", visit=None, team=None, said=None, proof="", path="", sentence=sentence, status=status)
    return Response(page, status, HEADERS, "text/html")


__all__ = ["HEADERS", "LOGIN", "PUBLIC", "Pages", "Visit", "address_of", "is_there", "not_there"]
