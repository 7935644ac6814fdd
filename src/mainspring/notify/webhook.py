"""Webhooks: a notification as a POST that its receiver can tell from a forged one, and from one that came before."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit
from uuid import UUID

import msgspec

from mainspring.clock import SystemClock
from mainspring.errors import OutboundFailed, OutboundRefused, Undeliverable, Undelivered
from mainspring.model.channel import Webhook, one_line
from mainspring.model.outcome import RetryAfter
from mainspring.model.redact import Redactor
from mainspring.notify.delivery import Delivery
from mainspring.notify.signature import EVENT, ID, SIGNATURE, TIMESTAMP, sign
from mainspring.outbound import Reply

_WORTH_ANOTHER_TRY = (408, 425, 429)
_MOST_SHOWN = 200
_MOST_READ = 65_536
_LONGEST_PUT_OFF = timedelta(hours=6)
_MOST_DIGITS = 6
_BETWEEN_PARTS = re.compile(r"[/?&;=]")

_clock = SystemClock()


class Letter(NamedTuple):
    """What is sent: its id, which is the same with every try, whose it is, and what it tells."""

    id: UUID
    team: str
    notice: Mapping[str, object]


class PutOff(RetryAfter):
    """The receiver wants to be asked again later, and says when."""


def send(channel: Webhook, letter: Letter, delivery: Delivery, details: dict[str, Any]) -> None:
    """Send *letter*, and note in *details* what is kept of the answer."""
    links = delivery.links(letter.notice)
    body = msgspec.json.encode({"id": str(letter.id), **letter.notice, **({"links": links} if links else {})})
    headers = {"Content-Type": "application/json", "User-Agent": "Mainspring"}
    secrets = delivery.secrets(letter.team, channel.secrets)
    headers |= signed_headers(letter, body, secrets)
    redact = Redactor([*_private_parts(channel.url), *secrets])
    try:
        reply = delivery.outbound.request("POST", channel.url, headers=headers, content=body, most=_MOST_READ)
    except OutboundRefused as error:
        raise Undeliverable(redact(str(error))) from None  # its cause would be kept with the job as it is
    except OutboundFailed as error:
        raise Undelivered(redact(str(error))) from None
    details |= {"status": reply.status, "seconds": round(reply.seconds, 3)}
    # All of it, before it is cut: half a secret would not be found.
    _judge(reply, channel.place, one_line(redact(reply.body.decode(errors="replace")))[:_MOST_SHOWN])


def signed_headers(letter: Letter, body: bytes, secrets: Sequence[str]) -> dict[str, str]:
    """Return the headers by which the receiver knows *body*, and whose it is if there are *secrets*."""
    timestamp = int(_clock.now().timestamp())
    headers = {ID: str(letter.id), TIMESTAMP: str(timestamp), EVENT: str(letter.notice.get("event", ""))}
    return {**headers, SIGNATURE: sign(secrets, headers[ID], timestamp, body)} if secrets else headers


def _private_parts(url: str) -> list[str]:
    """Return what only the owner of *url* is to know, and receivers like to repeat: what is behind the host."""
    split = urlsplit(url)
    whole = f"{split.path}?{split.query}" if split.query else split.path
    parts = [url, whole, split.path, split.query, *_BETWEEN_PARTS.split(whole)] if whole.strip("/") else []
    return [form for part in parts for form in (part, unquote(part))]


def _judge(reply: Reply, place: str, said: str) -> None:
    """Raise unless the receiver has taken what was sent."""
    if 200 <= reply.status < 300:
        return
    why = f"{place} answered {reply.status}" + (f": {said}" if said else "")
    if reply.status < 500 and reply.status not in _WORTH_ANOTHER_TRY:
        raise Undeliverable(why)
    after = reply.headers.get("retry-after", "").strip()
    if after.isascii() and after.isdigit() and len(after) <= _MOST_DIGITS:
        raise PutOff(min(timedelta(seconds=int(after)), _LONGEST_PUT_OFF), why)
    raise Undelivered(why)
