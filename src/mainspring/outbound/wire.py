"""One request and its reply, on a connection of its own to an address that was checked, within one deadline."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import httpcore

from mainspring.clock import SystemClock
from mainspring.errors import OutboundFailed
from mainspring.outbound.addresses import Address
from mainspring.outbound.target import Target

_CLOCK = SystemClock()
_HEAD = 65_536
_CHUNK = 65_536


@dataclass(frozen=True, slots=True)
class Message:
    """What to send, and whereto."""

    method: str
    target: Target
    headers: Sequence[tuple[str, str]]
    content: bytes | None

    def lines(self) -> list[tuple[bytes, bytes]]:
        """Return all headers; nothing asks for a compressed reply, which might be a bomb."""
        ours = [("Host", self.target.authority), ("Connection", "close")]
        given = {name.lower() for name, _ in self.headers}
        usual = [("User-Agent", "mainspring"), ("Accept", "*/*"), ("Accept-Encoding", "identity")]
        if self.content is not None or self.method in ("POST", "PUT", "PATCH"):
            ours.append(("Content-Length", str(len(self.content or b""))))
        lines = [*ours, *(line for line in usual if line[0].lower() not in given), *self.headers]
        return [(name.encode("ascii"), value.encode("latin-1")) for name, value in lines]


@dataclass(frozen=True, slots=True)
class Limits:
    """How far a request may go; its times are on the steady clock."""

    connect_by: float
    end_by: float
    most: int
    tls: Callable[[], ssl.SSLContext]


def exchange(message: Message, addresses: Sequence[Address], limits: Limits) -> tuple[int, dict[str, str], bytes, bool]:
    """Send *message*, and return status, headers and body of the reply, and whether the body was cut."""
    target = message.target
    url = httpcore.URL(
        scheme=target.scheme.encode(), host=target.host.encode(), port=target.port, target=target.path.encode()
    )
    connection = httpcore.HTTPConnection(
        origin=url.origin,
        ssl_context=limits.tls() if target.scheme == "https" else None,
        network_backend=_Pinned(addresses, limits),
    )
    request = httpcore.Request(method=message.method, url=url, headers=message.lines(), content=message.content)
    try:
        response = connection.handle_request(request)
        body, truncated = _body(response, limits.most)
        return response.status, _joined(response.headers), body, truncated
    except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, OSError, _TooMuch) as error:
        raise OutboundFailed(f"{target.origin} did not answer: {_why(error)}") from None
    finally:
        connection.close()


class _TooMuch(Exception):
    """A reply that is longer than anybody can have meant."""


class _Pinned(httpcore.NetworkBackend):
    """Connects to one of the addresses that were checked, whatever host the connection is for."""

    def __init__(self, addresses: Sequence[Address], limits: Limits) -> None:
        self._addresses = addresses
        self._limits = limits

    def connect_tcp(
        self,
        host: str,  # noqa: ARG002 - resolved already: to look again is what the guard is there to prevent
        port: int,
        timeout: float | None = None,  # noqa: ARG002
        local_address: str | None = None,  # noqa: ARG002
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        failure: OSError = TimeoutError("timed out")
        for number, address in enumerate(self._addresses):
            left = self._limits.connect_by - _CLOCK.steady()
            if left <= 0:
                break
            try:
                # An address that swallows packets must leave time for the next.
                sock = socket.create_connection((str(address), port), left / (len(self._addresses) - number))
            except OSError as error:
                failure = error
            else:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return _Stream(sock, self._limits, [_HEAD + 2 * self._limits.most + _CHUNK])
        raise failure


class _Stream(httpcore.NetworkStream):
    """A connection whose every wait is cut by one deadline: a peer that sends a byte a second can't draw it out."""

    def __init__(self, sock: socket.socket, limits: Limits, allowance: list[int]) -> None:
        self._sock = sock
        self._limits = limits
        self._allowance = allowance  # bytes that may yet come, heads and frames of chunks included

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002 - the deadline is for all
        data: bytes = self._in_time(lambda: self._sock.recv(min(max_bytes, _CHUNK)))
        self._allowance[0] -= len(data)
        if self._allowance[0] < 0:
            raise _TooMuch("its reply is too long")
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        rest = memoryview(buffer)
        try:
            while rest:
                part = rest[:_CHUNK]
                rest = rest[self._in_time(lambda part=part: self._sock.send(part)) :]  # type: ignore[misc]
        except ConnectionError as error:  # a server that has seen enough may have answered before it hung up
            raise httpcore.WriteError(str(error)) from None

    def close(self) -> None:
        self._sock.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        self._sock.settimeout(max(0.001, self._limits.connect_by - _CLOCK.steady()))
        try:
            self._sock = ssl_context.wrap_socket(self._sock, server_hostname=server_hostname)
        except BaseException:
            self._sock.close()
            raise
        return self

    def get_extra_info(self, info: str) -> Any:
        if info == "ssl_object" and isinstance(self._sock, ssl.SSLSocket):
            return self._sock
        return None

    def _in_time(self, wait: Callable[[], Any]) -> Any:
        left = self._limits.end_by - _CLOCK.steady()
        if left <= 0:
            raise TimeoutError("timed out")
        self._sock.settimeout(left)
        return wait()


def _body(response: httpcore.Response, most: int) -> tuple[bytes, bool]:
    """Return the body, or as much of it as may be read. What is over is never read, nor anything unpacked."""
    body = bytearray()
    try:
        for part in response.iter_stream():
            body += part
            if len(body) > most:
                return bytes(body[:most]), True
    except _TooMuch:
        return bytes(body), True
    return bytes(body), False


def _joined(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    joined: dict[str, str] = {}
    for name, value in headers:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        joined[key] = f"{joined[key]}, {text}" if key in joined else text
    return joined


def _why(error: Exception) -> str:
    """Return what went wrong, in words: httpcore's errors often carry none."""
    if isinstance(error, (TimeoutError, httpcore.TimeoutException)):
        return "it took too long"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not valid for it ({error.verify_message})"
    return str(error) or type(error).__name__
