"""Traces: an enqueue and the attempts that come of it are parts of one trace, where OpenTelemetry is in use.

It is never imported here: whoever uses it has done so, and nobody else pays for it.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

from mainspring.model.job import Job
from mainspring.model.outcome import Failed, Outcome, Succeeded, TimedOut

log = logging.getLogger("mainspring.traces")


def traceparent() -> str | None:
    """Return the span that is current here, as W3C's traceparent; None if there is none."""
    trace = _api()
    return None if trace is None else _parent(trace.get_current_span())


def tracing() -> Tracing | None:
    """Return what makes spans, or None where nobody has said what is to become of them."""
    trace = _api()
    if trace is None:
        return None
    provider = trace.get_tracer_provider()
    if isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider):
        return None
    return Tracing(trace, provider.get_tracer("mainspring"))


def continue_trace(job: Job) -> None:
    """Let what is done in this context be part of the trace of *job*, where another process makes its span."""
    if job.trace is not None and _api() is not None:
        _attach(_context_of(job))


class Tracing:
    """Makes a span for each attempt. What goes wrong with a span is logged, and is no matter of the job's."""

    def __init__(self, trace: Any, tracer: Any) -> None:
        self._trace = trace
        self._tracer = tracer

    def begin(self, job: Job) -> AttemptSpan:
        """Begin the span of an attempt at *job*, a child of the one in which that was enqueued."""
        try:
            span = self._tracer.start_span(
                f"{job.task} execute",
                context=_context_of(job),
                kind=self._trace.SpanKind.CONSUMER,
                attributes={
                    "mainspring.job.id": str(job.id),
                    "mainspring.job.task": job.task,
                    "mainspring.job.queue": job.queue,
                    "mainspring.job.attempt": job.attempt,
                },
            )
        except Exception:
            log.exception("can't begin the span of job %s", job.id)
            span = self._trace.INVALID_SPAN
        return AttemptSpan(self._trace, span)


class AttemptSpan:
    """The span of one attempt."""

    def __init__(self, trace: Any, span: Any) -> None:
        self._trace = trace
        self._span = span

    @property
    def traceparent(self) -> str | None:
        return _parent(self._span)

    def enter(self) -> None:
        """Be current in this context from now on, which is the attempt's own and ends with it."""
        _attach(self._trace.set_span_in_context(self._span))

    def end(self, outcome: Outcome | None) -> None:
        """End with what the attempt came to; None when that can't be recorded."""
        try:
            self._span.set_attribute("mainspring.outcome", "unrecorded" if outcome is None else outcome.name)
            self._tell(outcome)
            self._span.end()
        except Exception:
            log.exception("can't end a span")

    def _tell(self, outcome: Outcome | None) -> None:
        code = self._trace.StatusCode
        if isinstance(outcome, Succeeded):
            self._span.set_status(code.OK)
        elif isinstance(outcome, Failed | TimedOut):
            failure = outcome.failure
            told = {"exception.type": failure.type, "exception.message": failure.message}
            self._span.add_event("exception", {**told, "exception.stacktrace": failure.traceback or ""})
            self._span.set_status(code.ERROR, f"{failure.type}: {failure.message}")
        elif outcome is not None and outcome.name == "lost":
            self._span.set_status(code.ERROR, "its process died")


def _api() -> Any:
    return sys.modules.get("opentelemetry.trace")


def _parent(span: Any) -> str | None:
    context = span.get_span_context()
    if not context.is_valid:
        return None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def _context_of(job: Job) -> Any:
    """Return the context in which *job* was enqueued: an empty one if it was in none."""
    from opentelemetry.context import Context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    given = {} if job.trace is None else {"traceparent": job.trace}
    return TraceContextTextMapPropagator().extract(given, context=Context())


def _attach(context: Any) -> None:
    from opentelemetry.context import attach

    attach(context)
