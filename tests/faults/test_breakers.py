"""A downstream that goes away costs few attempts, and nothing stampedes when it is back, though workers die."""

from __future__ import annotations

import pytest

from tests.faults.breaker_storm import storm

pytestmark = pytest.mark.slow


def test_jobs_wait_out_a_downstream_that_is_down_and_go_on_by_and_by(url: str) -> None:
    account = storm(url, jobs=300, workers=3, seconds=5, cooldown="500ms..4s")

    assert account.balanced, account
    assert account.kills >= 1
