"""What a handler writes and its job's success are both there or neither, whenever its worker is killed."""

from __future__ import annotations

import pytest

from tests.faults.transaction_storm import storm

pytestmark = pytest.mark.slow


def test_each_row_is_there_once_though_workers_are_killed(url: str) -> None:
    account = storm(url, jobs=120, kills=6, workers=3)

    assert account.balanced, account
    assert account.kills == 6
    assert account.lost > 0
