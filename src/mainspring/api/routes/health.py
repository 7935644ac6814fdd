"""Health: whether the process is alive, and whether it can serve."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from starlette.responses import JSONResponse, Response

from mainspring.api.documents import HealthDocument
from mainspring.api.policy import PUBLIC
from mainspring.api.routing import Routes, answer

routes = Routes("health", prefix="")


@routes.get("/healthz", PUBLIC, gives=HealthDocument, head=True)
async def healthz() -> Response:
    """Say that the process is alive."""
    return answer({"status": "ok"})


@routes.get("/readyz", PUBLIC, gives=HealthDocument, problems=(503,), head=True)
async def readyz(request: Request) -> Response:
    """Say that the database answers, and has the tables that this version needs."""
    await request.app.state.readiness.check()
    return answer({"status": "ok"})


@routes.get("/openapi.json", PUBLIC)
async def openapi(request: Request) -> Response:
    """Show this document."""
    document: dict[str, Any] = request.app.openapi()
    return JSONResponse(document)
