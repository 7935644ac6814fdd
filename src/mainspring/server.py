"""The server: the HTTP API on an address of this machine, on a thread of its own."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import resource
import socket
import threading

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from mainspring.api.app import make_api
from mainspring.api.callers import Settings, has_live_token
from mainspring.app import Mainspring
from mainspring.errors import InvalidValue, MainspringError
from mainspring.metrics import configured_token
from mainspring.model.token import Role
from mainspring.web.site import leave, mount

_GRACE = 10
"""Seconds that requests may take to end when the server stops."""

_IDLE = 30
_LONGEST_HEAD = 16 * 1024
_BACKLOG = 2048
_FEWEST_CONNECTIONS, _MOST_CONNECTIONS, _FOR_OTHERS = 100, 4_000, 200

log = logging.getLogger("mainspring.api")


class Server:
    """Serves the API of an app from `start` until `stop`."""

    def __init__(self, app: Mainspring, host: str, port: int) -> None:
        """Take the address, or refuse it: nobody but this machine is served while no admin's token guards the rest."""
        self._socket = _bound(host, port)
        try:
            loopback = ipaddress.ip_address(self._socket.getsockname()[0].partition("%")[0]).is_loopback
            if not loopback:
                _check_guarded(app, host)
            settings = Settings(loopback=loopback, metrics_token=configured_token())
        except BaseException:
            self._socket.close()
            raise
        host, port = self._socket.getsockname()[:2]
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        self._api = make_api(app, settings)
        mount(self._api)
        self._server = _Uvicorn(_config(self._api))
        self._thread = threading.Thread(target=self._serve, name="mainspring-server", daemon=True)

    def start(self) -> None:
        """Serve from now on."""
        logging.getLogger("uvicorn").setLevel(logging.WARNING)  # what it has to say of its start, we say
        self._thread.start()
        self._server.ready.wait()
        if not self._server.started:
            self._thread.join()
            raise MainspringError("the server could not start; its log says why")
        log.info("serving the dashboard and the API on %s", self.url)

    def stop(self) -> None:
        """Let requests end, those that follow what happens at once, and serve no more."""
        if self._thread.is_alive():
            self._api.state.hang_up()
            self._server.should_exit = True
            self._thread.join()
            leave(self._api)
        self._socket.close()

    def _serve(self) -> None:
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._server.ready.set()


class _Uvicorn(uvicorn.Server):
    """One that tells when it has started, or could not."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


class _Connection(H11Protocol):
    """One on which the head of a request must come in as soon as the next request must.

    uvicorn waits without end for the first byte of a connection, and for the rest of a head: whoever opens many and
    says nothing would have all of them, without a token.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def data_received(self, data: bytes) -> None:
        expected, self.timeout_keep_alive_task = self.timeout_keep_alive_task, None
        super().data_received(data)
        if self.conn.their_state is h11.IDLE and self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = expected
        elif expected is not None:
            expected.cancel()


def _check_guarded(app: Mainspring, host: str) -> None:
    if not has_live_token(app.unbound(), Role.ADMIN):
        raise InvalidValue(
            f"expected a token of an admin before others than this machine are served on {host}, got none; "
            "make one with `mainspring tokens create`"
        )


def _config(api: FastAPI) -> uvicorn.Config:
    return uvicorn.Config(
        api,
        # Named, here and for the loop, so that what else is installed does not change how requests are read.
        http=_Connection,
        loop="asyncio",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # what a header says of the client decides nothing
        timeout_keep_alive=_IDLE,
        timeout_graceful_shutdown=_GRACE,
        h11_max_incomplete_event_size=_LONGEST_HEAD,
        backlog=_BACKLOG,
        limit_concurrency=_most_connections(),
    )


def _most_connections() -> int:
    """Return how many may be served at once: as many as leave some descriptors for files and the database."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(_FEWEST_CONNECTIONS, min(_MOST_CONNECTIONS, allowed - _FOR_OTHERS))


def _bound(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as error:
        raise InvalidValue(f"can't listen on {host}: {error.strerror or error}; choose another with --host") from None
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(_BACKLOG)
    except OSError as error:
        bound.close()
        raise InvalidValue(
            f"can't listen on {host}:{port}: {error.strerror or error}; choose another address with --host and --port"
        ) from None
    return bound
