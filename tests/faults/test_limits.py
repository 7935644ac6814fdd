"""Limits hold while workers are killed, and stopped past their lease."""

from __future__ import annotations

import pytest

from tests.faults.limit_storm import storm

pytestmark = pytest.mark.slow


def test_limits_hold_and_no_slot_is_lost_while_workers_die(url: str) -> None:
    account = storm(url, jobs=120, workers=4, seconds=6)

    assert account.balanced, account
    assert account.kills + account.stops >= 2
