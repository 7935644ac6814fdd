"""Metrics: how the whole fleet is, in the words of Prometheus."""

from __future__ import annotations

from starlette.responses import Response

from mainspring.api.callers import Asking
from mainspring.api.policy import SCRAPED
from mainspring.api.routing import Routes
from mainspring.metrics import render
from mainspring.metrics.render import CONTENT_TYPE

routes = Routes("health", prefix="")


@routes.get("/metrics", SCRAPED, media_type="text/plain")
def metrics(caller: Asking) -> Response:
    """Show the metrics of the fleet.

    The token that the server finds in MAINSPRING_METRICS_TOKEN lets in, too, and opens nothing else.
    """
    return Response(render(caller.whole), headers={"Content-Type": CONTENT_TYPE})
