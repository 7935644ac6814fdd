"""A clock that stands still until it is told to move."""

from __future__ import annotations

from datetime import UTC, datetime

from mainspring.model.duration import Duration, duration


class SettableClock:
    """Wall time and steady time under a test's control."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, 12, tzinfo=UTC)) -> None:
        self._now = start
        self._steady = 1_000_000.0

    def now(self) -> datetime:
        return self._now

    def steady(self) -> float:
        return self._steady

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, length: Duration) -> None:
        """Let *length* pass, on both clocks."""
        step = duration(length, "length")
        self._now += step
        self._steady += step.total_seconds()

    def jump(self, to: datetime) -> None:
        """Set the wall clock to *to*, as an administrator or a time server would; no time passes."""
        self._now = to
