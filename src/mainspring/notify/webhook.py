"""Webhooks: a notification as a POST that its receiver can tell from a forged one, and from one that came before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from mainspring.clock import SystemClock
from mainspring.errors import OutboundFailed, OutboundRefused, Undeliverable, Undelivered
from mainspring.model.channel import Webhook, one_line
from mainspring.model.outcome import RetryAfter
from mainspring.notify.delivery import Delivery
from mainspring.notify.signature import EVENT, ID, SIGNATURE, TIMESTAMP, sign
from mainspring.outbound import Reply

_WORTH_ANOTHER_TRY = (408, 425, 429)
_MOST_SHOWN = 200
_MOST_READ = 65_536
_LONGEST_PUT_OFF = timedelta(hours=6)
_MOST_DIGITS = 6

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
    headers |= signed_headers(letter, body, delivery.secrets(letter.team, channel.secrets))
    try:
        reply = delivery.outbound.request("POST", channel.url, headers=headers, content=body, most=_MOST_READ)
    except OutboundRefused as error:
        raise Undeliverable(str(error)) from error
    except OutboundFailed as error:
        raise Undelivered(str(error)) from error
    details |= {"status": reply.status, "seconds": round(reply.seconds, 3)}
    _judge(reply, channel.place)


def signed_headers(letter: Letter, body: bytes, secrets: Sequence[str]) -> dict[str, str]:
    """Return the headers by which the receiver knows *body*, and whose it is if there are *secrets*."""
    timestamp = int(_clock.now().timestamp())
    headers = {ID: str(letter.id), TIMESTAMP: str(timestamp), EVENT: str(letter.notice.get("event", ""))}
    return {**headers, SIGNATURE: sign(secrets, headers[ID], timestamp, body)} if secrets else headers


def _judge(reply: Reply, place: str) -> None:
    """Raise unless the receiver has taken what was sent."""
    if 200 <= reply.status < 300:
        return
    said = one_line(reply.body[: 4 * _MOST_SHOWN].decode(errors="replace"))[:_MOST_SHOWN]
    why = f"{place} answered {reply.status}" + (f": {said}" if said else "")
    if reply.status < 500 and reply.status not in _WORTH_ANOTHER_TRY:
        raise Undeliverable(why)
    after = reply.headers.get("retry-after", "").strip()
    if after.isascii() and after.isdigit() and len(after) <= _MOST_DIGITS:
        raise PutOff(min(timedelta(seconds=int(after)), _LONGEST_PUT_OFF), why)
    raise Undelivered(why)
