"""Outbound: the one way out for requests whose URL comes from outside."""

from __future__ import annotations

import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from mainspring.clock import SystemClock
from mainspring.errors import OutboundFailed, OutboundRefused
from mainspring.outbound.addresses import Address, Allowed, is_local_name, is_public, parsed
from mainspring.outbound.headers import checked_headers, checked_method
from mainspring.outbound.target import Target, target_of

Resolve = Callable[..., Iterable[tuple[Any, Any, Any, Any, Any]]]

CONNECT = 5.0
TOTAL = 30.0
MOST = 65_536
ALLOW = "MAINSPRING_OUTBOUND_ALLOW"
_CLOCK = SystemClock()


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back: header names in lower case, of the body no more than was asked for."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    truncated: bool
    seconds: float


class Outbound:
    """Sends requests to public addresses, and to what the operator allows beside them.

    A host name is resolved once, all its addresses are checked, and the connection goes to one of these: a second
    answer of its name server can't lead anywhere else. Nothing is followed, redirects least of all; proxies that the
    environment names are not used, and no cookie is kept. May be used by many threads at once.
    """

    def __init__(
        self,
        allow: Iterable[str] = (),
        resolve: Resolve = socket.getaddrinfo,
        *,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """*tls* says which certificates are trusted, in place of those that the system trusts."""
        self._allowed = Allowed(allow)
        self._resolve = resolve
        self._given_tls = tls

    @classmethod
    def configured(cls) -> Outbound:
        """Return one as the operator of this process wants it: MAINSPRING_OUTBOUND_ALLOW names hosts and networks."""
        return _configured(os.environ.get(ALLOW, ""))

    def check(self, url: str) -> None:
        """Refuse a *url* of which it is certain, without asking any name server, that no request may go there."""
        self._admit(target_of(url))

    def request(  # noqa: PLR0913 - what there is to say about a request, all by name
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        connect: float = CONNECT,
        total: float = TOTAL,
        most: int = MOST,
    ) -> Reply:
        """Send a request and return the reply, within *total* seconds, with *most* bytes of its body at most.

        Raises OutboundRefused where it must not go, which no retry changes, and OutboundFailed where it did not get
        through.
        """
        began = _CLOCK.steady()
        target = target_of(url)
        method, lines = checked_method(method), checked_headers(headers or {})
        self._admit(target)
        wire = _wire()
        addresses = self._addresses(target, min(connect, total))
        message = wire.Message(method, target, lines, content)
        limits = wire.Limits(
            connect_by=began + min(connect, total), end_by=began + total, most=most, tls=lambda: self._tls
        )
        status, received, body, truncated = wire.exchange(message, addresses, limits)
        return Reply(status, received, body, truncated, _CLOCK.steady() - began)

    def _admit(self, target: Target) -> None:
        """Refuse *target* if its name or the address that it names is none for requests."""
        if target.address is not None:
            self._check([target.address], target)
        elif is_local_name(target.host) and not self._allowed.names(target.host):
            raise OutboundRefused(
                f"host {target.host} is a name of a private network, where requests must not go; "
                f"the operator of the workers can allow it with {ALLOW}"
            )

    def _addresses(self, target: Target, seconds: float) -> list[Address]:
        """Return where to connect to, having checked every address that the host has."""
        if target.address is not None:
            return [target.address]
        found = [parsed(entry[4][0]) for entry in _in_time(lambda: self._look_up(target), seconds, target)]
        if not found:
            raise OutboundFailed(f"host {target.host} has no address")
        self._check(found, target)
        return list(dict.fromkeys(found))

    def _check(self, addresses: Iterable[Address], target: Target) -> None:
        # The address is not told: whoever may name hosts could map the inside of our network by our answers.
        if self._allowed.names(target.host):
            return
        if not all(is_public(address) or self._allowed.reaches(address) for address in addresses):
            raise OutboundRefused(
                f"host {target.host} is, or has, an address that is not public, where requests must not go; "
                f"the operator of the workers can allow it with {ALLOW}"
            )

    def _look_up(self, target: Target) -> list[tuple[Any, Any, Any, Any, Any]]:
        return list(self._resolve(target.host, target.port, type=socket.SOCK_STREAM))

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return self._given_tls or ssl.create_default_context()


@lru_cache(maxsize=8)
def _configured(allow: str) -> Outbound:
    # Kept, because to read all certificates that the system trusts takes longer than many a request.
    return Outbound(allow=allow.replace(",", " ").split())


def _in_time(look_up: Callable[[], list[Any]], seconds: float, target: Target) -> list[Any]:
    """Return what *look_up* finds, on a thread of its own: the system's resolver knows no deadline."""
    found: list[Any] = []
    failed: list[Exception] = []

    def run() -> None:
        try:
            found.extend(look_up())
        except Exception as error:  # noqa: BLE001 - told below, on the thread that asked
            failed.append(error)

    thread = threading.Thread(target=run, name="mainspring-resolve", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise OutboundFailed(f"no name server told the address of {target.host} within {seconds:g} seconds")
    if failed:
        raise OutboundFailed(f"the address of {target.host} could not be found: {failed[0]}")
    return found


def _wire() -> Any:
    try:
        from mainspring.outbound import wire
    except ModuleNotFoundError as error:
        if error.name not in ("httpcore", "h11"):
            raise
        raise OutboundFailed("requests need an HTTP library; run `pip install 'mainspring[server]'`") from None
    return wire
