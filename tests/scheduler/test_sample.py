"""The loop that samples: when it looks again, and that it goes on when the database is away."""

from __future__ import annotations

from typing import cast

import pytest

from mainspring.errors import StoreUnavailable
from mainspring.scheduler.sample import sample
from mainspring.store import Store
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock


def test_it_comes_back_when_the_next_minute_begins(store: SqlStore, clock: SettableClock) -> None:
    clock.advance("45s")

    assert [sample(store), sample(store)] == [15.0, 15.0]


def test_it_tries_on_when_the_database_is_away(caplog: pytest.LogCaptureFixture) -> None:
    class Away:
        def sample(self) -> None:
            raise StoreUnavailable("connection refused")

    assert sample(cast(Store, Away())) > 0
    assert "can't take note of how many jobs are ready, trying on: connection refused" in caplog.text
