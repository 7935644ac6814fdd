"""Routes: what a path does, who may use it, and what it answers, declared in one place."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypedDict, TypeVar, Unpack

import msgspec
from fastapi import FastAPI, Request
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.responses import Response

from mainspring.api.documents import ProblemDocument
from mainspring.api.mistakes import unknown_name
from mainspring.api.policy import PUBLIC, Policy, policy_of
from mainspring.api.problems import MEDIA_TYPE, mistaken
from mainspring.api.requests import LARGEST, JsonRequest

Quick = Callable[[JsonRequest, Any], Awaitable[Response]]
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])

TEAM_PARAMETER = "team"
"""What the query of every request may name."""

_GUARDED = (401, 403, 404, 422, 503)
_WITH_BODY = (400, 408, 413, 415)
_SAID = {
    400: "The body is not JSON, or was cut off.",
    401: "There is no token, or none that lets anybody in.",
    403: "The role of the token is too small.",
    404: "There is no such thing, or it is another team's.",
    408: "The body took too long.",
    409: "The thing is not in a state that allows it.",
    413: "The body is too large.",
    415: "The body is not JSON, or it is packed.",
    422: "A value is not what was expected.",
    429: "It is more than the team may have.",
    503: "The database did not answer.",
}


class About(TypedDict, total=False):
    """What a route may say beside its path and its policy."""

    gives: type[BaseModel]
    status: int
    also: dict[int, type[BaseModel] | None]  # other answers that are no problems
    problems: Sequence[int]
    most: int  # bytes of its body
    media_type: str
    veiled: bool  # whether nothing of its body is shown in what is wrong with that
    head: bool  # whether a HEAD is answered as well, as those ask who watch whether a server is up
    quickly: Quick  # what handles its requests in place of the framework, which only tells of it


_KEPT = {"most", "veiled", "head", "quickly"}
"""What is asked again of a route that stands."""


class Guarded(APIRoute):
    """A route that lets nobody through whom its policy does not, before it has read anything of the body.

    Nor does it take a query with names that mean nothing to it: a filter that is misspelled would let everything pass.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        policy, handle = policy_of(self.endpoint), super().get_route_handler()
        most: int = getattr(self.endpoint, "most", LARGEST)
        quickly: Quick | None = getattr(self.endpoint, "quickly", None)
        known = [*(one.alias for one in self.dependant.query_params), TEAM_PARAMETER]

        async def guarded(request: Request) -> Response:
            careful = JsonRequest(request.scope, request.receive)
            careful.most = most
            if policy is PUBLIC:
                return await handle(careful)
            caller = await request.app.state.gate.admit(careful, policy)
            careful.state.caller = caller
            unknown = [name for name in request.query_params if name not in known]
            if unknown:
                return mistaken([unknown_name(f"query.{name}", name, known) for name in unknown])
            answer = await (handle(careful) if quickly is None else quickly(careful, caller))
            # Only a mistake of ours: every change is on record before it is made.
            assert caller.recorded or policy.records is None, f"{self.path} did not record what it did"
            return answer

        return guarded


class Routes:
    """Routes of one kind of thing. Each must say what it needs: there is no default."""

    def __init__(self, tag: str, prefix: str = "/api/v1") -> None:
        self.tag = tag
        self._prefix = prefix
        self._made: list[tuple[str, str, Callable[..., Any], dict[str, Any]]] = []

    def get(self, path: str, policy: Policy, **about: Unpack[About]) -> Callable[[Endpoint], Endpoint]:
        return self._route("GET", path, policy, about)

    def post(self, path: str, policy: Policy, **about: Unpack[About]) -> Callable[[Endpoint], Endpoint]:
        return self._route("POST", path, policy, about)

    def put(self, path: str, policy: Policy, **about: Unpack[About]) -> Callable[[Endpoint], Endpoint]:
        return self._route("PUT", path, policy, about)

    def delete(self, path: str, policy: Policy, **about: Unpack[About]) -> Callable[[Endpoint], Endpoint]:
        return self._route("DELETE", path, policy, about)

    def mount(self, api: FastAPI) -> None:
        """Add the routes to *api*."""
        for method, path, endpoint, options in self._made:
            api.router.add_api_route(
                path, endpoint, methods=[method], tags=[self.tag], route_class_override=Guarded, **options
            )
            if getattr(endpoint, "head", False):
                api.router.add_api_route(
                    path, endpoint, methods=["HEAD"], include_in_schema=False, route_class_override=Guarded, **options
                )

    def _route(self, method: str, path: str, policy: Policy, about: About) -> Callable[[Endpoint], Endpoint]:
        def declare(endpoint: Endpoint) -> Endpoint:
            endpoint.policy = policy  # type: ignore[attr-defined]
            for name in _KEPT & about.keys():
                setattr(endpoint, name, about[name])  # type: ignore[literal-required]
            self._made.append((method, f"{self._prefix}{path}", endpoint, _options(endpoint, policy, about, method)))
            return endpoint

        return declare


def answer(document: object, status: int = 200) -> Response:
    """Return *document* as an answer in JSON."""
    return Response(msgspec.json.encode(document), status, media_type="application/json")


def nothing() -> Response:
    """Return the answer of what has nothing to tell."""
    return Response(status_code=204)


def _options(endpoint: Callable[..., Any], policy: Policy, about: About, method: str) -> dict[str, Any]:
    summary, _, rest = (endpoint.__doc__ or "").strip().partition("\n")
    problems = {*about.get("problems", ()), *(() if policy is PUBLIC else _GUARDED)}
    if method in ("POST", "PUT"):
        problems |= {*_WITH_BODY}
    responses: dict[int | str, dict[str, Any]] = {
        status: {"description": _SAID[status], "content": {MEDIA_TYPE: {"schema": _PROBLEM_SCHEMA}}}
        for status in sorted(problems)
    }
    for status, model in about.get("also", {}).items():
        responses[status] = {"description": "Likewise.", **({} if model is None else {"model": model})}
    gives, status = about.get("gives"), about.get("status", 200)
    said: dict[str, Any] = {"description": "It is so."}
    if "media_type" in about:
        said["content"] = {about["media_type"]: {"schema": {"type": "string"}}}
    if gives is not None:
        said["model"] = gives
    responses[status] = said
    audit = f" On record in the audit log as `{policy.records}`." if policy.records else ""
    return {
        "summary": summary.rstrip("."),
        "description": f"{' '.join(rest.split())} Needs: {policy}.{audit}".strip(),
        "operation_id": endpoint.__name__,
        "status_code": status,
        "responses": responses,
        "response_class": Response,
        "openapi_extra": {} if policy is PUBLIC else {"security": [{"token": []}]},
    }


_PROBLEM_SCHEMA = {"$ref": f"#/components/schemas/{ProblemDocument.__name__}"}
