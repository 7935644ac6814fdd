"""E-mail: a notification as a mail, through the operator's own server, over TLS."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP as WIRE
from email.utils import format_datetime
from ipaddress import ip_address
from urllib.parse import unquote, urlsplit
from uuid import UUID

from mainspring.clock import SystemClock
from mainspring.errors import InvalidValue, Undeliverable, Undelivered
from mainspring.model.channel import Email, check_address, check_header, one_line
from mainspring.model.redact import Redactor
from mainspring.model.text import shortened
from mainspring.notify.delivery import MAIL_FROM, SMTP, Delivery
from mainspring.notify.signature import EVENT, ID
from mainspring.notify.words import html, subject, text, values_of

_TIMEOUT = 15.0
_MOST_SHOWN = 200
_PERMANENT = 500
_PORTS = {"smtp": 25, "smtp+plain": 25, "smtp+starttls": 587, "smtps": 465}
_EXPECTED = f"expected {SMTP} to be like smtp+starttls://user:password@host:587 or smtps://user:password@host, or smtp://localhost"

_clock = SystemClock()


@dataclass(frozen=True, kw_only=True)
class Server:
    """A server that takes mail from us, and how to speak with it."""

    scheme: str
    host: str
    port: int
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    def told(self, answer: bytes | str) -> str:
        """Return what it says as that may be shown: whoever may see the job may not see with what we log in."""
        words = answer.decode(errors="replace") if isinstance(answer, bytes) else answer
        user, password = self.user or "", self.password or ""
        return one_line(Redactor([user, password, f"\0{user}\0{password}"])(words))[:_MOST_SHOWN]

    def unusable(self, why: str) -> Undelivered:
        """Return the error that says why no mail can be handed over to it, which is not the mail's fault."""
        return Undelivered(f"mail server {self.host}:{self.port} can't be used: {why}")


def server_of(url: str) -> Server:
    """Return the server that *url* names. Without TLS it must be on this machine, unless it says `smtp+plain`."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise InvalidValue(f"{_EXPECTED}, got one that can't be read") from None
    if parts.scheme not in _PORTS or not host:
        # The rest of it may hold a password.
        begins = f"one that begins with {parts.scheme!r}" if parts.scheme else "one that begins with none of these"
        raise InvalidValue(f"{_EXPECTED}, got {begins}")
    if parts.scheme == "smtp" and not _is_loopback(host):
        raise InvalidValue(
            f"{_EXPECTED}; {host} is another machine, where all could be read on the way: use smtp+starttls:// or "
            "smtps://, or smtp+plain:// if you must"
        )
    user, password = (None if part is None else unquote(part) for part in (parts.username, parts.password))
    return Server(scheme=parts.scheme, host=host, port=port or _PORTS[parts.scheme], user=user, password=password)


def sender_of(mail_from: str) -> Address:
    """Return whom mails are from: an address, with or without a name."""
    check_header(mail_from, MAIL_FROM)
    name, separator, rest = mail_from.strip().rpartition("<")
    address = rest.removesuffix(">") if separator else rest
    try:
        check_address(address)
    except InvalidValue:
        raise InvalidValue(
            f"expected {MAIL_FROM} to be an address in ASCII, with a name before it or without, as in "
            f"'Mainspring <jobs@example.org>', got: {shortened(mail_from)}"
        ) from None
    return Address(display_name=name.strip().strip('"'), addr_spec=address)


def check_delivery(delivery: Delivery) -> None:
    """Refuse what says neither where mail goes, nor whom it is from, nor what links begin with, but means to."""
    if delivery.smtp is not None:
        server_of(delivery.smtp)
    if delivery.mail_from is not None:
        sender_of(delivery.mail_from)
    delivery.check_base_url()


def send(
    channel: Email,
    notice_id: UUID,
    notice: Mapping[str, object],
    delivery: Delivery,
    tls: Callable[[], ssl.SSLContext] = ssl.create_default_context,
) -> dict[str, object]:
    """Mail *notice*, whose id is the same with every try, and return what is kept of that."""
    if delivery.smtp is None or delivery.mail_from is None:
        raise Undelivered(f"no mail can be sent by this worker; set {SMTP} and {MAIL_FROM} for it")
    try:
        server, sender = server_of(delivery.smtp), sender_of(delivery.mail_from)
    except InvalidValue as error:
        raise Undelivered(str(error)) from error  # the operator may mend it before the last try
    mail = compose(channel, notice_id, notice, sender, delivery.links(notice))
    refused = _transmit(mail, server, sender.addr_spec, list(channel.to), tls)
    return {"refused": refused} if refused else {}


def compose(
    channel: Email, notice_id: UUID, notice: Mapping[str, object], sender: Address, links: Mapping[str, str]
) -> EmailMessage:
    """Return the mail that tells of *notice*."""
    values = values_of(notice_id, notice, links)
    headers = {
        "From": str(sender),
        "To": ", ".join(channel.to),
        "Subject": subject(channel, values),
        "Date": format_datetime(_clock.now()),
        "Message-ID": f"<{notice_id}@{sender.domain}>",
        "Auto-Submitted": "auto-generated",
        ID: str(notice_id),
        EVENT: one_line(str(notice.get("event", ""))),
    }
    mail = EmailMessage(policy=WIRE)
    for name, value in headers.items():
        check_header(value, name)
        mail[name] = value
    mail.set_content(text(channel, values, notice))
    mail.add_alternative(html(channel, values, notice), subtype="html")
    return mail


def _transmit(
    mail: EmailMessage, server: Server, sender: str, to: list[str], tls: Callable[[], ssl.SSLContext]
) -> dict[str, str]:
    """Hand *mail* over to *server*; return those of *to* that it has refused for good, if there are others."""
    with _connected(server, tls) as connection:
        try:
            refused = connection.send_message(mail, sender, to)
        except smtplib.SMTPRecipientsRefused as error:
            refused = error.recipients
        except smtplib.SMTPResponseException as error:
            raise _refusal(error.smtp_code, server.told(error.smtp_error)) from None
    answers = {address: (code, server.told(answer)) for address, (code, answer) in refused.items()}
    passing = [answer for answer in answers.values() if answer[0] < _PERMANENT]
    if passing or len(answers) == len(to):
        raise _refusal(*(passing or list(answers.values()))[0])
    return {address: f"{code} {told}" for address, (code, told) in answers.items()}


@contextmanager
def _connected(server: Server, tls: Callable[[], ssl.SSLContext]) -> Iterator[smtplib.SMTP]:
    """Lend a connection to *server* over which mail may go."""
    try:
        connection = _connect(server, tls)
        try:
            if server.scheme == "smtp+starttls":
                connection.starttls(context=tls())
            if server.user is not None:
                _log_in(connection, server, server.user)
            yield connection
        finally:
            _leave(connection)
    except (smtplib.SMTPException, OSError) as error:
        # Without its cause, which is kept with the job, and says what the server said as it was.
        raise server.unusable(server.told(str(error))) from None


def _log_in(connection: smtplib.SMTP, server: Server, user: str) -> None:
    """Log in. What the server says to that is not told at all: it may repeat the password, in whatever way."""
    try:
        connection.login(user, server.password or "")
    except smtplib.SMTPAuthenticationError:
        raise server.unusable("the log-in was refused") from None
    except UnicodeEncodeError:
        raise server.unusable("expected user and password of ASCII characters, got others") from None


def _connect(server: Server, tls: Callable[[], ssl.SSLContext]) -> smtplib.SMTP:
    if server.scheme == "smtps":
        return smtplib.SMTP_SSL(server.host, server.port, timeout=_TIMEOUT, context=tls())
    return smtplib.SMTP(server.host, server.port, timeout=_TIMEOUT)


def _leave(connection: smtplib.SMTP) -> None:
    """Say goodbye. A server that does not answer has taken the mail, or refused it, all the same."""
    with suppress(smtplib.SMTPException, OSError):
        connection.quit()
    connection.close()


def _refusal(code: int, told: str) -> Undelivered:
    kind = Undeliverable if code >= _PERMANENT else Undelivered
    return kind(f"the mail server refused the mail: {code} {told}")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
