"""Sessions: how long a lease may be."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from mainspring.errors import InvalidValue
from mainspring.model.session import NewSession


@pytest.mark.parametrize("lease", [timedelta(0), timedelta(milliseconds=99), timedelta(days=40_000), 15, None])
def test_a_lease_that_makes_no_sense_is_refused_in_words_that_a_command_line_can_use(lease: Any) -> None:
    with pytest.raises(InvalidValue) as caught:
        NewSession(id=UUID(int=1), name="host:1", lease=lease)

    assert str(caught.value) == f"expected lease to be a duration such as 90s, from 100ms to 100 years, got: {lease}"
