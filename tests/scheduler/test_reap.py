"""The loop that reaps: what it says of what it took back."""

from __future__ import annotations

from typing import cast

import pytest

from mainspring.scheduler.reap import reap
from mainspring.store import Store


class FakeStore:
    """Only reaps, as it is told to."""

    def __init__(self, reaped: int) -> None:
        self._reaped = reaped

    def reap(self) -> int:
        return self._reaped


@pytest.mark.parametrize(("reaped", "jobs"), [(1, "1 job"), (2, "2 jobs"), (1_000, "1,000 jobs")])
def test_what_was_taken_back_is_logged(reaped: int, jobs: str, caplog: pytest.LogCaptureFixture) -> None:
    reap(cast("Store", FakeStore(reaped)))

    assert caplog.messages == [f"took back {jobs} of workers that did not renew their lease"]


def test_nothing_is_logged_when_nothing_was(caplog: pytest.LogCaptureFixture) -> None:
    reap(cast("Store", FakeStore(0)))

    assert caplog.messages == []
