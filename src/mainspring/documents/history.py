"""A history as programs are told of it."""

from __future__ import annotations

from datetime import timedelta

from mainspring.documents.values import Told, read, seconds, seconds_of
from mainspring.model.history import History, Sample


def history_document(history: History) -> dict[str, object]:
    return {
        "over": history.over,
        "span_seconds": history.span.total_seconds(),
        "items": [_sample_document(one) for one in history.samples],
    }


def _sample_document(sample: Sample) -> dict[str, object]:
    return {
        "since": sample.since.isoformat(),
        "succeeded": sample.succeeded,
        "failed": sample.failed,
        "retried": sample.retried,
        "ready": sample.ready,
        "oldest_ready_seconds": seconds(sample.oldest),
        "wait_p50_seconds": seconds(sample.wait_p50),
        "wait_p99_seconds": seconds(sample.wait_p99),
    }


def history_of(told: Told) -> History:
    samples = [_sample_of(one) for one in told["items"]]
    return History(over=told["over"], span=timedelta(seconds=told["span_seconds"]), samples=samples)


def _sample_of(told: Told) -> Sample:
    lengths = {
        "oldest": seconds_of(told["oldest_ready_seconds"]),
        "wait_p50": seconds_of(told["wait_p50_seconds"]),
        "wait_p99": seconds_of(told["wait_p99_seconds"]),
    }
    return read({**told, **lengths}, Sample)
