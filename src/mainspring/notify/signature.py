"""Signatures of webhooks: HMAC-SHA256 over the time and the body, by one secret, or by two while they are changed."""

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


def sign(secrets: Sequence[str], timestamp: int, body: bytes) -> str:
    """Return the header that shows that whoever knows one of *secrets* has sent *body* at that time."""
    return ",".join(_VERSION + _mac(secret, str(timestamp), body) for secret in secrets)


def verify(secret: str | Sequence[str], headers: Mapping[str, str], body: bytes, tolerance: Duration = "5m") -> bool:
    """Return whether a webhook that came with *headers* and *body* is ours, and was sent within *tolerance* of now.

    *secret* may be two, of which one will do, while they are changed. The body must be as it came, byte by byte. What
    comes again within the tolerance has the same `Mainspring-Id`: whoever must not act twice keeps that in mind.
    """
    window = duration(tolerance, "tolerance").total_seconds()
    given = {name.lower(): value for name, value in headers.items()}
    timestamp = given.get(TIMESTAMP.lower(), "")
    parts = given.get(SIGNATURE.lower(), "").split(",")[:_MOST_SIGNATURES]
    signatures = [part.strip().removeprefix(_VERSION) for part in parts if part.strip().startswith(_VERSION)]
    secrets = [one for one in ([secret] if isinstance(secret, str) else secret) if one]
    # All are compared, whatever was found before: the time that it takes tells nothing.
    genuine = [
        hmac.compare_digest(_mac(one, timestamp, body).encode(), signature.encode(errors="replace"))
        for one in secrets
        for signature in signatures
    ]
    return any(genuine) and _is_recent(timestamp, window)


def _is_recent(timestamp: str, window: float) -> bool:
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= _MOST_DIGITS):
        return False
    return abs(_clock.now().timestamp() - int(timestamp)) <= window


def _mac(secret: str, timestamp: str, body: bytes) -> str:
    return hmac.new(secret.encode(), timestamp.encode(errors="replace") + b"." + body, sha256).hexdigest()
