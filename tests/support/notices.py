"""What was left to be told, as the jobs that tell it stand in the store."""

from __future__ import annotations

from typing import Any

import msgspec

from mainspring.model.channel import Channel, Webhook, encode_channels
from mainspring.model.job import NOTIFY_QUEUE as QUEUE
from mainspring.model.job import Job
from mainspring.store.protocol import JobFilter
from mainspring.store.sql import SqlStore

EVERYTHING = ("success", "failure", "retry", "late", "missed", "recovered")
HOOK = Webhook("https://example.org/hook", on=EVERYTHING)


def telling(*channels: Channel) -> str:
    """Return *channels*, or one that wants to know everything, as they are kept with a job."""
    text = encode_channels(channels or [HOOK])
    assert text is not None
    return text


def notifications(store: SqlStore) -> list[Job]:
    """Return the jobs that tell people, the oldest first."""
    return store.page(JobFilter(queue=QUEUE), limit=10_000)[::-1]


def notice_of(job: Job) -> dict[str, Any]:
    """Return what *job* tells."""
    notice: dict[str, Any] = msgspec.json.decode(job.payload)["kwargs"]["notice"]
    return notice


def events(store: SqlStore) -> list[str]:
    """Return of which events people are to be told, by name: those of one instant are in no order."""
    return sorted(notice_of(job)["event"] for job in notifications(store))
