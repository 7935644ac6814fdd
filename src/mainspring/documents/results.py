"""Results that are put together from those of other jobs, as far as they can be had."""

from __future__ import annotations

from typing import Any

from mainspring.errors import MainspringError
from mainspring.job_handle import JobHandle
from mainspring.model.job import JobState


def result_of(job: JobHandle[Any]) -> object:
    """Return the result of a workflow; None where it has none, or has one that is too large or sealed for us.

    All else about it is to be seen all the same.
    """
    if job.snapshot.state is not JobState.SUCCEEDED:
        return None
    try:
        return job.result(timeout=0)
    except MainspringError:
        return None
