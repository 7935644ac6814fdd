"""A second app beside the test's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mainspring import Mainspring


@pytest.fixture
def sender(url: str) -> Iterator[Mainspring]:
    """An app on the same database that has no tasks of its own."""
    made = Mainspring(url)
    yield made
    made.close()
