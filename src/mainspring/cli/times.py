"""Instants and lengths of time as people read them."""

from __future__ import annotations

from datetime import datetime

from mainspring.model.span import coarse, span

__all__ = ["ago", "local", "since", "span", "until"]


def ago(moment: datetime, now: datetime) -> str:
    """Return how long ago *moment* was. Clocks of machines differ a little, so the future counts as now."""
    seconds = (now - moment).total_seconds()
    return f"{coarse(seconds)} ago" if seconds >= 1 else "now"


def since(moment: datetime, now: datetime) -> str:
    """Return for how long it has been so since *moment*."""
    return f"for {coarse((now - moment).total_seconds())}"


def until(moment: datetime, now: datetime) -> str:
    """Return how far ahead *moment* is."""
    return f"in {coarse((moment - now).total_seconds())}" if moment > now else "now"


def local(moment: datetime) -> str:
    """Return *moment* in this machine's time zone."""
    return moment.astimezone().isoformat(sep=" ", timespec="seconds")
