"""Each notification arrives at least once, under one id, though workers and receivers come and go."""

from __future__ import annotations

import pytest

from tests.faults.notify_storm import storm

pytestmark = pytest.mark.slow


def test_each_notification_arrives_under_one_id_whoever_is_restarted(url: str) -> None:
    account = storm(url, jobs=60, kills=4, workers=2)

    assert account.balanced, account
    assert (account.kills, account.restarts) == (4, 4)
