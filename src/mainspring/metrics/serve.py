"""Serve: metrics over HTTP, for workers that have no other server."""

from __future__ import annotations

import errno
import hmac
import ipaddress
import logging
import os
import threading
from collections.abc import Iterable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from mainspring.errors import InvalidValue, MainspringError
from mainspring.metrics.render import CONTENT_TYPE, registry_of, render

if TYPE_CHECKING:
    from mainspring.app import Mainspring

_PATIENCE = 5.0
"""Seconds that whoever asks may take for it."""

_SHORTEST_TOKEN = 16

log = logging.getLogger("mainspring.metrics")


class MetricsServer:
    """A server on threads of its own, until it is closed."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self._server = server
        self.port: int = server.server_address[1]
        self._thread = threading.Thread(target=server.serve_forever, name="mainspring-metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def configured_token() -> str | None:
    """Return the token that MAINSPRING_METRICS_TOKEN says; one that could be guessed is refused."""
    token = os.environ.get("MAINSPRING_METRICS_TOKEN")
    _check_token(token)
    return token


def serve(
    app: Mainspring, ports: Iterable[int], *, host: str = "127.0.0.1", token: str | None = None
) -> MetricsServer | None:
    """Serve the metrics of *app* at `/metrics`, on the first of *ports* that is free; return None if none is.

    To any other host than this one only with a *token*, which whoever asks sends as a bearer's.
    """
    _check_reach(host, token)
    registry_of(app)  # so that what is not installed is missed now
    for port in ports:
        try:
            return MetricsServer(_Server((host, port), _handler(app, token)))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise MainspringError(f"can't serve metrics on {host}, port {port}: {error.strerror}") from error
    return None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002 - as it is called
        log.debug("a request for metrics ended early", exc_info=True)


def _handler(app: Mainspring, token: str | None) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _PATIENCE
        server_version, sys_version = "mainspring", ""

        def do_GET(self) -> None:
            if not _is_allowed(self.headers.get("Authorization", ""), token):
                self._answer(HTTPStatus.UNAUTHORIZED, b"a token is needed\n", "text/plain; charset=utf-8")
            elif self.path.partition("?")[0] != "/metrics":
                self._answer(HTTPStatus.NOT_FOUND, b"metrics are at /metrics\n", "text/plain; charset=utf-8")
            else:
                self._answer(HTTPStatus.OK, render(app), CONTENT_TYPE)

        def _answer(self, status: HTTPStatus, body: bytes, kind: str) -> None:
            self.send_response(status)
            if status is HTTPStatus.UNAUTHORIZED:
                self.send_header("WWW-Authenticate", "Bearer")
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
            """Say nothing: somebody asks every few seconds, and may ask for anything."""

    return Handler


def _is_allowed(given: str, token: str | None) -> bool:
    return token is None or hmac.compare_digest(given.encode(), f"Bearer {token}".encode())


def _check_token(token: str | None) -> None:
    if token is not None and len(token) < _SHORTEST_TOKEN:
        raise InvalidValue(f"expected a token for metrics of {_SHORTEST_TOKEN} characters or more, got {len(token)}")


def _check_reach(host: str, token: str | None) -> None:
    _check_token(token)
    try:
        near = ipaddress.ip_address(host).is_loopback
    except ValueError:
        near = host == "localhost"
    if not near and token is None:
        raise InvalidValue(
            f"expected metrics to be served to this host only, got: {host}; set MAINSPRING_METRICS_TOKEN to serve them "
            "to others, or let the API's server do it"
        )
