"""Handlers of a program that uses OpenTelemetry, for child processes."""

from __future__ import annotations

from opentelemetry import trace  # noqa: F401 - which makes it one

from mainspring.traces import traceparent


def traceparent_here() -> str | None:
    """Return the trace of which what is done here is part."""
    return traceparent()
