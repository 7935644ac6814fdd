"""Signatures of webhooks: HMAC-SHA256 over id, time and body, by one secret, or by two while they are changed."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from hashlib import sha256

from mainspring.clock import SystemClock
from mainspring.model.duration import Duration, duration

ID, TIMESTAMP, EVENT, SIGNATURE = (
    "Mainspring-Id",
    "Mainspring-Timestamp",
    "Mainspring-Event",
    "Mainspring-Signature",
)
_VERSION = "v1="
_MOST_SIGNATURES = 8
_MOST_DIGITS = 12

_clock = SystemClock()


def sign(secrets: Sequence[str], notice_id: str, timestamp: int, body: bytes) -> str:
    """Return the header that shows that whoever knows one of *secrets* has sent *body* at that time, with that id."""
    return ",".join(_VERSION + _mac(secret, notice_id, str(timestamp), body) for secret in secrets)


def verify(secret: str | Sequence[str], headers: Mapping[str, str], body: bytes, tolerance: Duration = "5m") -> bool:
    """Return whether a webhook that came with *headers* and *body* is ours, and was sent within *tolerance* of now.

    *secret* may be two, of which one will do, while they are changed. The body must be as it came, byte by byte. What
    comes again, by our own doing or another's, has the same `Mainspring-Id`, which is signed too: whoever must not act
    twice keeps that in mind.
    """
    window = duration(tolerance, "tolerance").total_seconds()
    given = {name.lower(): value for name, value in headers.items()}
    notice_id, timestamp = given.get(ID.lower(), ""), given.get(TIMESTAMP.lower(), "")
    parts = given.get(SIGNATURE.lower(), "").split(",")[:_MOST_SIGNATURES]
    signatures = [part.strip().removeprefix(_VERSION) for part in parts if part.strip().startswith(_VERSION)]
    secrets = [one for one in ([secret] if isinstance(secret, str) else secret) if one]
    # All are compared, whatever was found before: the time that it takes tells nothing.
    genuine = [
        hmac.compare_digest(_mac(one, notice_id, timestamp, body).encode(), signature.encode(errors="replace"))
        for one in secrets
        for signature in signatures
    ]
    return any(genuine) and _is_id(notice_id) and _is_recent(timestamp, window)


def _is_id(notice_id: str) -> bool:
    # With a dot in it, what is signed could be taken apart in another place, within the body.
    return notice_id != "" and "." not in notice_id


def _is_recent(timestamp: str, window: float) -> bool:
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= _MOST_DIGITS):
        return False
    return abs(_clock.now().timestamp() - int(timestamp)) <= window


def _mac(secret: str, notice_id: str, timestamp: str, body: bytes) -> str:
    head = f"{notice_id}.{timestamp}.".encode(errors="replace")
    return hmac.new(secret.encode(), head + body, sha256).hexdigest()
