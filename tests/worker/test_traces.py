"""Traces: enqueue and execute are parts of one trace, in threads, coroutines and processes, where somebody traces."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from mainspring import Mainspring, Retry, Snooze
from mainspring.job_handle import JobHandle
from mainspring.traces import traceparent, tracing
from tests.support.waiting import until
from tests.worker import process_tasks, traced_tasks
from tests.worker.children import LONG, in_process

ONCE = Retry(max_attempts=1)


class Recorder:
    """A provider whose spans are in a list."""

    def __init__(self) -> None:
        self.provider = TracerProvider(shutdown_on_exit=False)
        self._exporter = InMemorySpanExporter()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = self.provider.get_tracer("test")

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())

    def of(self, job: JobHandle[Any]) -> list[ReadableSpan]:
        """Return the spans of the attempts at *job*."""
        return [span for span in self.spans if (span.attributes or {}).get("mainspring.job.id") == str(job.id)]


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    """A provider for the whole process, as long as the test lasts: OpenTelemetry takes one, once."""
    made = Recorder()
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", made.provider)
    yield made
    made.provider.shutdown()


def enqueued_in_a_span(recorder: Recorder, task: Any, *args: object) -> tuple[JobHandle[Any], trace.SpanContext]:
    with recorder.tracer.start_as_current_span("request") as span:
        return task.enqueue(*args), span.get_span_context()


def told(span: ReadableSpan) -> str:
    context = span.context
    assert context is not None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def check_child(span: ReadableSpan, parent: trace.SpanContext) -> None:
    assert span.parent is not None
    assert span.context is not None
    assert (span.context.trace_id, span.parent.span_id) == (parent.trace_id, parent.span_id)


@pytest.mark.parametrize("kind", ["thread", "timed", "coroutine"])
def test_an_attempt_is_a_child_of_the_span_in_which_its_job_was_enqueued(
    app: Mainspring, recorder: Recorder, kind: str
) -> None:
    seen: list[str | None] = []

    def work() -> None:
        seen.append(traceparent())

    async def awork() -> None:
        seen.append(traceparent())

    policies: Any = {"name": "work", "queue": "mail", **({"timeout": "1m"} if kind == "timed" else {})}
    task = app.task(**policies)(awork if kind == "coroutine" else work)
    with app.worker():
        job, parent = enqueued_in_a_span(recorder, task)
        job.result(timeout=LONG)
        until(lambda: recorder.of(job))

    (span,) = recorder.of(job)
    check_child(span, parent)
    assert seen == [told(span)]
    assert (span.name, span.kind, span.status.status_code) == ("work execute", SpanKind.CONSUMER, StatusCode.OK)
    assert dict(span.attributes or {}) == {
        "mainspring.job.id": str(job.id),
        "mainspring.job.task": "work",
        "mainspring.job.queue": "mail",
        "mainspring.job.attempt": 1,
        "mainspring.outcome": "succeeded",
    }


def test_an_attempt_in_a_process_is_a_child_likewise_and_what_is_done_there_is_part_of_it(
    app: Mainspring, recorder: Recorder
) -> None:
    task = in_process(app, traced_tasks.traceparent_here)
    with app.worker():
        job, parent = enqueued_in_a_span(recorder, task)
        there = job.result(timeout=LONG)

    (span,) = recorder.of(job)
    check_child(span, parent)
    assert there == told(span)
    assert span.status.status_code is StatusCode.OK


def test_a_process_that_dies_leaves_its_span(app: Mainspring, recorder: Recorder) -> None:
    task = in_process(app, process_tasks.exit_hard)
    with app.worker():
        job, _ = enqueued_in_a_span(recorder, task)
        until(lambda: recorder.of(job))

    assert (recorder.of(job)[0].attributes or {})["mainspring.outcome"] == "lost"
    assert recorder.of(job)[0].status.status_code is StatusCode.ERROR


def test_a_failure_is_told_with_its_exception_and_every_attempt_has_a_span(app: Mainspring, recorder: Recorder) -> None:
    @app.task(retry=Retry(max_attempts=2, base="0s"))
    def boom() -> None:
        raise ValueError("no luck")

    with app.worker():
        job, parent = enqueued_in_a_span(recorder, boom)
        until(lambda: len(recorder.of(job)) == 2)

    for number, span in enumerate(recorder.of(job), 1):
        check_child(span, parent)
        assert (span.attributes or {})["mainspring.job.attempt"] == number
        assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "ValueError: no luck")
        (event,) = span.events
        assert (event.attributes or {})["exception.type"] == "ValueError"
        assert "in boom" in str((event.attributes or {})["exception.stacktrace"])


def test_what_is_neither_success_nor_failure_is_neither_in_the_trace(app: Mainspring, recorder: Recorder) -> None:
    @app.task
    def lazy() -> None:
        raise Snooze("1h")

    with app.worker():
        job, _ = enqueued_in_a_span(recorder, lazy)
        until(lambda: recorder.of(job))

    (span,) = recorder.of(job)
    assert span.status.status_code is StatusCode.UNSET
    assert (span.attributes or {})["mainspring.outcome"] == "snoozed"


def test_what_a_handler_enqueues_goes_on_with_the_trace_and_others_begin_one(
    app: Mainspring, recorder: Recorder
) -> None:
    @app.task
    def second() -> None: ...

    @app.task
    def first() -> str:
        return str(second.enqueue().id)

    with app.worker():
        one, parent = enqueued_in_a_span(recorder, first)
        two = app.job(one.result(timeout=LONG))
        alone = second.enqueue()
        for job in (two, alone):
            job.result(timeout=LONG)
        until(lambda: len(recorder.of(two)) + len(recorder.of(alone)) == 2)

    ((span,), (next_span,), (own,)) = (recorder.of(job) for job in (one, two, alone))
    assert span.context is not None
    check_child(next_span, span.context)
    assert own.parent is None
    assert own.context is not None
    assert own.context.trace_id != parent.trace_id


def test_side_by_side_each_job_has_its_own_span(app: Mainspring, recorder: Recorder) -> None:
    gate, seen = threading.Barrier(4), dict[int, str | None]()

    @app.task
    def work(number: int) -> None:
        gate.wait()
        seen[number] = traceparent()

    with app.worker(concurrency=4):
        jobs = {number: enqueued_in_a_span(recorder, work, number) for number in range(4)}
        for job, _ in jobs.values():
            job.result(timeout=LONG)

    for number, (job, parent) in jobs.items():
        (span,) = recorder.of(job)
        check_child(span, parent)
        assert span.context is not None
        assert f"{span.context.span_id:016x}" in str(seen[number])


class Broken(SpanProcessor):
    def __init__(self, where: str) -> None:
        setattr(self, where, self._fail)

    def _fail(self, *_: Any, **__: Any) -> None:
        raise ValueError("no trace")


@pytest.mark.parametrize("kind", ["thread", "coroutine", "process"])
@pytest.mark.parametrize("where", ["on_start", "on_end"])
def test_a_trace_that_fails_fails_no_job(app: Mainspring, recorder: Recorder, kind: str, where: str) -> None:
    recorder.provider.add_span_processor(Broken(where))

    async def apid() -> int:
        return 1

    handler = process_tasks.pid if kind != "coroutine" else apid
    task = app.task(executor=kind, retry=ONCE, name="pid")(handler)
    with app.worker():
        assert task.enqueue().result(timeout=LONG)


def test_where_nobody_traces_nothing_is_done(app: Mainspring) -> None:
    @app.task
    def work() -> str | None:
        return traceparent()

    assert tracing() is None
    with app.worker():
        assert work.enqueue().result(timeout=LONG) is None


def test_a_program_that_does_not_use_it_does_not_import_it(sqlite_url: str) -> None:
    program = f"""
import sys
from mainspring import Mainspring
app = Mainspring({sqlite_url!r})
@app.task
def work() -> None: ...
with app.worker():
    work.enqueue().result(timeout=30)
app.close()
sys.exit(any(name.startswith(("opentelemetry", "prometheus_client")) for name in sys.modules))
"""
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
