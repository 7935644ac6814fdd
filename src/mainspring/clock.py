"""The only place that reads the time or draws chance."""

from __future__ import annotations

import os
import secrets
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


class Clock(Protocol):
    """Wall time and steady time."""

    def now(self) -> datetime:
        """Return the wall time, in UTC. It may jump."""
        ...

    def steady(self) -> float:
        """Return seconds on a clock that never jumps and is the same for every process of this boot."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return after *seconds*."""
        ...


class SystemClock:
    """The clocks of this machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    # CLOCK_MONOTONIC stands still while the machine is suspended. That is what a lease wants: worker and
    # reaper of a SQLite file sleep and wake together, so a closed laptop loses no lease.
    def steady(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


def microseconds(moment: datetime) -> int:
    """Return *moment* as microseconds since 1970, exactly."""
    return (moment - EPOCH) // MICROSECOND


def moment(microseconds: int) -> datetime:
    """Return the instant that lies *microseconds* after 1970, exactly."""
    return EPOCH + timedelta(0, 0, microseconds)


def random_bits(count: int) -> int:
    """Return *count* bits from the operating system, so that forked processes never draw the same."""
    return int.from_bytes(os.urandom((count + 7) // 8)) >> (-count % 8)


def secret_bytes(count: int) -> bytes:
    """Return *count* bytes that nobody can guess."""
    return secrets.token_bytes(count)
