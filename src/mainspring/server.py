"""The server: the HTTP API on an address of this machine, on a thread of its own."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import resource
import socket
import threading
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from mainspring.api.app import make_api
from mainspring.api.callers import Settings, has_live_token
from mainspring.app import Mainspring
from mainspring.errors import InvalidValue, MainspringError
from mainspring.garbage import move_out, settle_in
from mainspring.metrics import configured_token
from mainspring.model.token import Role
from mainspring.web.site import leave, mount

_GRACE = 10
"""Seconds that requests may take to end when the server stops."""

_IDLE = 30
_TOO_LONG = "The head of the request is too long."
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
        settle_in()
        log.info("serving the dashboard and the API on %s", self.url)

    def stop(self) -> None:
        """Let requests end, those that follow what happens at once, and serve no more."""
        if self._thread.is_alive():
            self._api.state.hang_up()
            self._server.should_exit = True
            self._thread.join()
            move_out()
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


class _Connection(HttpToolsProtocol):
    """One on which the head of a request must come in as soon as the next request must, and leave no doubt.

    uvicorn waits without end for the first byte of a connection, and for the rest of a head: whoever opens many and
    says nothing, or what never comes to an end, would have all of them, without a token. And its parser takes what a
    server in front of ours may read in another way: two hosts, or one in the address; a body behind the offer to speak
    something else, which it leaves lying there as if it were the next request. What stands behind such an offer in the
    same piece it throws away, be it half a request: nothing is heard from there on.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_body = False
        self._deaf = False
        self._unheard = 0  # bytes since the last that told anything: the parser keeps a line until it ends
        self._why: str | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return
        expected, self.timeout_keep_alive_task = self.timeout_keep_alive_task, None
        served = self.cycle
        self._unheard += len(data)
        super().data_received(data)
        if self.cycle is served:
            self.timeout_keep_alive_task = expected
        elif expected is not None:
            expected.cancel()
        if self._unheard > _LONGEST_HEAD and not self._deaf:
            self.send_400_response(_TOO_LONG)

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_body:  # nor behind it, where it could add to what was checked
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._why = self._doubt()
        if self._why is not None:
            raise ValueError(self._why)  # of which an answer of 400 is made
        super().on_headers_complete()
        self._in_body = True
        if self.parser.should_upgrade():
            self._deafen()

    def on_body(self, body: bytes) -> None:
        self._unheard = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unheard = 0
        self._in_body = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if self._deaf and not self.pipeline:
            self.transport.close()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Say what is wrong and hang up; say nothing where other answers are under way, but hang up after them."""
        if self._is_next_to_answer():
            self._deaf = True
            super().send_400_response(self._why or msg)
            return
        if self._in_body and self.pipeline:
            self.pipeline.popleft()  # of which no more will come
        self._deafen()

    def _doubt(self) -> str | None:
        """Return why the head that has come in is not answered; None if it is."""
        names = [name for name, _ in self.headers]
        version = self.parser.get_http_version()
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > _LONGEST_HEAD:
            return _TOO_LONG
        if version not in ("1.0", "1.1"):
            return "Expected HTTP/1.0 or HTTP/1.1."
        if names.count(b"host") > 1 or (b"host" not in names and version != "1.0"):
            return "Expected one Host."
        if not self.url.startswith((b"/", b"*")) or self.parser.get_method() == b"CONNECT":
            return "Expected the path of something here."
        if any(name == b"transfer-encoding" and value.lower() != b"chunked" for name, value in self.headers):
            return "Expected no Transfer-Encoding but chunked."
        if self.parser.should_upgrade() and (b"content-length" in names or b"transfer-encoding" in names):
            return "Expected no Upgrade with a body: speak HTTP/1.1 from the beginning."
        return None

    def _is_next_to_answer(self) -> bool:
        """Return whether what comes in now is the next that is answered, and nothing of that answer is out."""
        if self.cycle is None or self.cycle.response_complete:
            return True
        return self._in_body and not self.pipeline and not self.cycle.response_started

    def _deafen(self) -> None:
        """Listen to nothing more, and hang up when what was asked by now is answered."""
        self._deaf = True
        self.cycle.keep_alive = False

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing of an upgrade that is offered: it is answered as if it were not."""


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
