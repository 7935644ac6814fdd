"""Channels: whom to tell of what becomes of jobs and schedules, and of which events."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import lru_cache
from hashlib import blake2b
from urllib.parse import SplitResult, urlsplit

import msgspec
from msgspec.structs import force_setattr, replace

from mainspring.errors import InvalidValue, did_you_mean
from mainspring.model.job import check_name
from mainspring.model.ports import PORTS_FOR_REQUESTS, takes_requests
from mainspring.model.template import fields
from mainspring.model.text import shortened, storable


class Event(StrEnum):
    """What people may want to be told of."""

    SUCCESS = "success"  # a job has succeeded
    FAILURE = "failure"  # a job has failed for good, or expired
    RETRY = "retry"  # an attempt has failed, or its worker was lost, and the job is tried again
    LATE = "late"  # a tick became a job long after its time, or a success that was expected has not come
    MISSED = "missed"  # ticks became no jobs, because nobody was there to fire them
    RECOVERED = "recovered"  # the first success after trouble


DEFAULT_EVENTS = (Event.FAILURE, Event.RECOVERED)

FIELDS = (
    *("event", "team", "job_id", "task", "queue", "state", "attempt", "schedule", "tick", "workflow", "reason"),
    *("error_type", "error_message", "at", "id", "link", "headline"),
)
"""What a template of a mail may name."""

REFERENCE = "secret://"
"""How a reference to a secret begins, which the worker resolves that uses it."""

_MOST_RECIPIENTS = 50
_MOST_CHANNELS = 20
_LONGEST_URL = 2_000
_LONGEST_SUBJECT = 200
_LONGEST_TEXT = 10_000
_LONGEST_ADDRESS = 254
_LONGEST_SECRET = 1_000

_ADDRESS = re.compile(
    r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*"
    r"@[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*"
)
# What would end a header, or what some program takes for the end of a line.
_BREAKS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class Webhook(msgspec.Struct, frozen=True, tag_field="kind", tag="webhook", omit_defaults=True):
    """Tell a URL, by a POST that is signed if there is a *secret*: a text, `secret://name`, or two for a rotation."""

    url: str
    on: Sequence[str] = DEFAULT_EVENTS
    secret: str | Sequence[str] | None = None

    def __post_init__(self) -> None:
        _check_url(self.url)
        force_setattr(self, "on", _events(self.on))
        force_setattr(self, "secret", _secrets(self.secret) or None)

    def __repr__(self) -> str:
        # Neither the secret, nor the path, which is one where a chat gives out addresses.
        return f"Webhook('{self.place}', on={_named(self.on)}{', secret=...' if self.secret else ''})"

    @property
    def secrets(self) -> tuple[str, ...]:
        """The secrets with which what is sent is signed, the newest first."""
        return _secrets(self.secret)

    @property
    def place(self) -> str:
        """Where it leads, without what only its owner is to know."""
        scheme, host, port = _origin(self.url)
        return f"{scheme}://{f'[{host}]' if ':' in host else host}" + ("" if port is None else f":{port}")

    @property
    def target(self) -> str:
        """What tells it from other channels."""
        return _digest("webhook", self.url)


class Email(msgspec.Struct, frozen=True, tag_field="kind", tag="email", omit_defaults=True):
    """Tell people by mail. *subject* and *text* are templates that take the place of ours."""

    to: str | Sequence[str]
    on: Sequence[str] = DEFAULT_EVENTS
    subject: str | None = None
    text: str | None = None

    def __post_init__(self) -> None:
        force_setattr(self, "to", _recipients(self.to))
        force_setattr(self, "on", _events(self.on))
        if self.subject is not None:
            _check_template(self.subject, "subject", _LONGEST_SUBJECT)
            check_header(self.subject, "subject")
        if self.text is not None:
            _check_template(self.text, "text", _LONGEST_TEXT)

    @property
    def place(self) -> str:
        """Where it leads."""
        return ", ".join(self.to)

    @property
    def target(self) -> str:
        """What tells it from other channels."""
        return _digest("email", *sorted(self.to), self.subject or "", self.text or "")


Channel = Webhook | Email

_decoder = msgspec.json.Decoder(tuple[Channel, ...])
_encoder = msgspec.json.Encoder()


def encode_channels(channels: Sequence[Channel] | Channel | None) -> str | None:
    """Return *channels* as they are kept with a job, or None if nobody is to be told."""
    if channels is None:
        return None
    given = [channels] if isinstance(channels, Webhook | Email) else channels
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidValue(f"expected notify to be a list of Webhook and Email, got: {shortened(channels)}")
    for one in given:
        if not isinstance(one, Webhook | Email):
            raise InvalidValue(f"expected notify to be a list of Webhook and Email, got in it: {shortened(one)}")
    if len(given) > _MOST_CHANNELS:
        raise InvalidValue(f"expected at most {_MOST_CHANNELS} channels in notify, got {len(given)}")
    return _encoder.encode(given).decode() if given else None


def channel_of(document: object) -> Channel:
    """Return the channel that a JSON *document* stands for, such as {"kind": "email", "to": "ops@example.org"}."""
    try:
        found: Channel = msgspec.convert(document, Channel)
    except msgspec.ValidationError as error:
        cause = error.__cause__  # what a channel itself refuses is said in its own words
        such = 'a webhook, {"kind": "webhook", "url": "https://…"}, or an e-mail, {"kind": "email", "to": "…"}'
        told = str(cause) if isinstance(cause, InvalidValue) else f"expected a channel such as {such}: {error}"
        raise InvalidValue(told) from None
    return found


@lru_cache(maxsize=1_000)
def decode_channels(text: str | None) -> tuple[Channel, ...]:
    """Return what *text* says, or nobody if that can't be read: what can't be told must not keep a job from ending."""
    try:
        return _decoder.decode(text) if text else ()
    except msgspec.MsgspecError:
        return ()


def redefined(before: Channel | None, new: Channel) -> Channel:
    """Return *new*, which takes the place of *before*: with its secret, if it names none and leads to the same host.

    Elsewhere it has none, or whoever may change where a channel leads could have things signed by a secret that he
    was never to use.
    """
    if isinstance(before, Webhook) and isinstance(new, Webhook) and not new.secrets:
        return replace(new, secret=before.secret) if _origin(before.url) == _origin(new.url) else new
    return new


def check_header(text: str, name: str) -> None:
    """Refuse what could end a header of a mail, and begin another."""
    found = _BREAKS.search(text)
    if found:
        raise InvalidValue(
            f"expected {name} to be one line without control characters, "
            f"got one with U+{ord(found[0]):04X}: {shortened(text)}"
        )


def one_line(text: str) -> str:
    """Return *text* on one line, for a header: whatever ends a line, or is no sign at all, becomes a space."""
    return " ".join(_BREAKS.sub(" ", text).split())


def check_address(address: str, name: str = "the address of a mail") -> None:
    """Refuse what is no address of one person, as the programs on its way would read it."""
    if not isinstance(address, str) or len(address) > _LONGEST_ADDRESS or not _ADDRESS.fullmatch(address):
        raise InvalidValue(
            f"expected {name} to be like ops@example.org, in ASCII and without a name, got: {shortened(address)}"
        )


def _recipients(to: Sequence[str]) -> tuple[str, ...]:
    given = (to,) if isinstance(to, str) else tuple(to)
    if not 1 <= len(given) <= _MOST_RECIPIENTS:
        raise InvalidValue(f"expected 1 to {_MOST_RECIPIENTS} addresses to mail to, got {len(given)}")
    for address in given:
        check_address(address)
    return tuple(dict.fromkeys(given))


def _events(on: Sequence[str]) -> tuple[Event, ...]:
    given = (on,) if isinstance(on, str) else tuple(on)
    for event in given:
        if event not in tuple(Event):
            hint = did_you_mean(str(event), Event)
            raise InvalidValue(f"expected on to be some of {', '.join(Event)}, got: {shortened(event)}{hint}")
    if not given:
        raise InvalidValue(f"expected on to be some of {', '.join(Event)}, got none")
    return tuple(dict.fromkeys(map(Event, given)))


def _secrets(secret: str | Sequence[str] | None) -> tuple[str, ...]:
    given = () if secret is None else (secret,) if isinstance(secret, str) else tuple(secret)
    if len(given) > 2:
        raise InvalidValue(f"expected one secret, or two while one takes the place of the other, got {len(given)}")
    for one in given:
        if not isinstance(one, str) or not 1 <= len(one) <= _LONGEST_SECRET or storable(one) != one:
            raise InvalidValue(f"expected a secret to be text of 1 to {_LONGEST_SECRET:,} characters, without NUL")
        if one.startswith(REFERENCE):
            check_name(one.removeprefix(REFERENCE), "the name of a secret")
    return given


def _check_url(url: str) -> None:
    expected = "expected the url of a webhook to be like https://example.org/path"
    if not isinstance(url, str) or len(url) > _LONGEST_URL or _BREAKS.search(url) or " " in url:
        raise InvalidValue(f"{expected}, of at most {_LONGEST_URL:,} characters and without blanks")
    try:
        parts = urlsplit(url)
        scheme, host, port = _parts(parts)
    except ValueError:
        raise InvalidValue(f"{expected}, got one that can't be read") from None
    if scheme not in ("http", "https") or not host:
        raise InvalidValue(f"{expected}, got one that begins with {shortened(url.partition('//')[0])}")
    if "@" in parts.netloc:
        raise InvalidValue(f"{expected}, without user and password, which are no part of an address; use a secret=")
    if port is not None and not takes_requests(port):
        raise InvalidValue(f"{expected}, on port {PORTS_FOR_REQUESTS}, got port {port}")


def _origin(url: str) -> tuple[str, str, int | None]:
    return _parts(urlsplit(url))


def _parts(parts: SplitResult) -> tuple[str, str, int | None]:
    return parts.scheme.lower(), (parts.hostname or "").lower(), parts.port


def _check_template(text: str, name: str, longest: int) -> None:
    if not isinstance(text, str) or len(text) > longest or storable(text) != text:
        raise InvalidValue(f"expected {name} to be text of at most {longest:,} characters, got: {shortened(text)}")
    try:
        named = fields(text, name)
    except InvalidValue:
        raise InvalidValue(
            f"expected {name} to name facts of the notification, each as in {{task}}, got: {shortened(text)}; "
            f"known are {', '.join(FIELDS)}"
        ) from None
    for field in named:
        if field not in FIELDS:
            hint = did_you_mean(field, FIELDS) or f"; known are {', '.join(FIELDS)}"
            raise InvalidValue(f"expected {name} to name facts of the notification, got {field!r}{hint}")


def _digest(*parts: str) -> str:
    return blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()


def _named(events: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(event) for event in events)
