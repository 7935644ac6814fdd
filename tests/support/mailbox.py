"""A mail server on loopback that keeps what comes, and refuses what it is told to."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

Refuse = Callable[[str], str | None]


@dataclass
class Mailbox:
    """*mails* are what was taken, in order; *recipients* whom each was for."""

    refuse: Refuse = lambda _: None
    mails: list[EmailMessage] = field(default_factory=list)
    recipients: list[list[str]] = field(default_factory=list)
    connections: int = 0
    port: int = 0

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self.port}"

    async def handle_EHLO(  # noqa: N802 - the library's name
        self, server: SMTP, session: Session, envelope: Envelope, hostname: str, responses: list[str]
    ) -> list[str]:
        self.connections += 1
        session.host_name = hostname
        return responses

    async def handle_RCPT(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        refusal = self.refuse(address)
        if refusal is None:
            envelope.rcpt_tos.append(address)
        return refusal or "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        content = envelope.content
        assert isinstance(content, bytes)
        self.mails.append(message_from_bytes(content, policy=default))
        self.recipients.append(list(envelope.rcpt_tos))
        return "250 OK"


class _Server(Controller):
    """The library's, which would look for itself on port 0 where it was to choose one."""

    def _trigger_server(self) -> None:
        self.port = self.server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
        super()._trigger_server()  # type: ignore[no-untyped-call]


@contextmanager
def mail_server(
    refuse: Refuse = lambda _: None,
    *,
    tls: ssl.SSLContext | None = None,
    login: tuple[str, str] | None = None,
    port: int = 0,
) -> Iterator[Mailbox]:
    """Listen while the block lasts. With *tls*, all that is said before STARTTLS is refused."""
    mailbox = Mailbox(refuse)
    settings: dict[str, Any] = {}
    if tls is not None:
        settings |= {"tls_context": tls, "require_starttls": True}
    if login is not None:
        settings |= {"authenticator": _knows(login), "auth_required": True}
    controller = _Server(mailbox, hostname="127.0.0.1", port=port, **settings)
    controller.start()
    try:
        mailbox.port = controller.port
        yield mailbox
    finally:
        controller.stop()


@contextmanager
def indiscreet_server(refuses: str) -> Iterator[str]:
    """Yield the address of a server that knows every log-in, and repeats it when it *refuses* one command.

    It repeats what it was sent, and what that means.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_gossip, args=(listener, refuses))
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _gossip(listener: socket.socket, refuses: str) -> None:
    with contextlib.suppress(OSError):
        while True:
            peer, _ = listener.accept()
            with peer, peer.makefile("rb") as lines, contextlib.suppress(OSError):
                peer.sendall(b"220 speak\r\n")
                known = ""
                for line in lines:
                    command, _, rest = line.decode().strip().partition(" ")
                    if command == "AUTH":
                        sent = rest.partition(" ")[2]
                        known = f"{sent} {b64decode(sent).decode()!r}"
                    if command.upper() == refuses:
                        peer.sendall(f"535 no to {known}\r\n".encode())
                    else:
                        answers = {"ehlo": "250-here\r\n250 AUTH PLAIN", "AUTH": "235 yes", "data": "354 go on"}
                        peer.sendall(f"{answers.get(command, '250 yes')}\r\n".encode())


def _knows(login: tuple[str, str]) -> Callable[..., AuthResult]:
    def authenticate(
        server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: LoginPassword
    ) -> AuthResult:
        return AuthResult(success=(data.login.decode(), data.password.decode()) == login)

    return authenticate
