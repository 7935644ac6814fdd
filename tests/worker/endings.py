"""What came of a job, and of each of its attempts."""

from __future__ import annotations

from typing import Any

from mainspring import JobState
from mainspring.job_handle import JobHandle
from tests.support.waiting import until


def ended(job: JobHandle[Any]) -> JobState:
    """Return the state in which *job* ended, having waited for it."""
    until(lambda: job.state.final)
    return job.state


def outcomes(job: JobHandle[Any]) -> list[str | None]:
    """Return what each attempt of *job* came to so far."""
    return [attempt.outcome for attempt in job.attempts()]
