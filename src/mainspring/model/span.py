"""Lengths of time as people read them."""

from __future__ import annotations

from datetime import timedelta

_UNITS = (("d", 86_400, 2), ("h", 3_600, 2), ("m", 60, 2))
"""Each with how many of it there must be: `90m` says more than `1h`."""


def span(length: timedelta) -> str:
    """Return *length* in its largest unit: `3ms`, `1.2s`, `40s`, `3m`, `5h`, `2d`."""
    seconds = max(0.0, length.total_seconds())
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f}ms"
    return f"{seconds:.1f}s".replace(".0s", "s") if seconds < 9.95 else coarse(seconds)


def coarse(seconds: float) -> str:
    """Return so many *seconds* in their largest unit, the shortest of which is one of them."""
    for name, size, enough in _UNITS:
        if seconds >= size * enough:
            return f"{seconds / size:.0f}{name}"
    return f"{max(0.0, seconds):.0f}s"
