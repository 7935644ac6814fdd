"""Instants and lengths of time as people read them."""

from __future__ import annotations

from datetime import datetime, timedelta

_UNITS = (("d", 86_400, 2), ("h", 3_600, 2), ("m", 60, 2))
"""Each with how many of it there must be: `90m` says more than `1h`."""


def span(length: timedelta) -> str:
    """Return *length* in its largest unit: `3ms`, `1.2s`, `40s`, `3m`, `5h`, `2d`."""
    seconds = max(0.0, length.total_seconds())
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f}ms"
    return f"{seconds:.1f}s".replace(".0s", "s") if seconds < 9.95 else _coarse(seconds)


def ago(moment: datetime, now: datetime) -> str:
    """Return how long ago *moment* was. Clocks of machines differ a little, so the future counts as now."""
    seconds = (now - moment).total_seconds()
    return f"{_coarse(seconds)} ago" if seconds >= 1 else "now"


def since(moment: datetime, now: datetime) -> str:
    """Return for how long it has been so since *moment*."""
    return f"for {_coarse((now - moment).total_seconds())}"


def until(moment: datetime, now: datetime) -> str:
    """Return how far ahead *moment* is."""
    return f"in {_coarse((moment - now).total_seconds())}" if moment > now else "now"


def local(moment: datetime) -> str:
    """Return *moment* in this machine's time zone."""
    return moment.astimezone().isoformat(sep=" ", timespec="seconds")


def _coarse(seconds: float) -> str:
    for name, size, enough in _UNITS:
        if seconds >= size * enough:
            return f"{seconds / size:.0f}{name}"
    return f"{max(0.0, seconds):.0f}s"
