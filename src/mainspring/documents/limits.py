"""Limits and breakers as programs are told of them."""

from __future__ import annotations

from mainspring.documents.values import Told, instant, read, seconds, seconds_of
from mainspring.model.breaker import BreakerStatus
from mainspring.model.limits import LimitStatus


def limit_document(limit: LimitStatus) -> dict[str, object]:
    return {
        "key": limit.key,
        "concurrency": limit.concurrency,
        "interval_seconds": seconds(limit.interval),
        "burst": limit.burst,
        "held": limit.held,
        "waiting": limit.waiting,
    }


def limit_of(told: Told) -> LimitStatus:
    return read({**told, "interval": seconds_of(told["interval_seconds"])}, LimitStatus)


def breaker_document(breaker: BreakerStatus) -> dict[str, object]:
    return {
        "key": breaker.key,
        "state": breaker.phase,
        "since": instant(breaker.since),
        "until": instant(breaker.until),
        "waiting": breaker.waiting,
        "probes": breaker.probes,
        "failures": breaker.failures,
        "attempts": breaker.attempts,
        "by": breaker.by,
        "reason": breaker.reason,
    }


def breaker_of(told: Told) -> BreakerStatus:
    return read({**told, "phase": told["state"]}, BreakerStatus)
