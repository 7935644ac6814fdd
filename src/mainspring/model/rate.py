"""A rate: so many in a while."""

from __future__ import annotations

import re
from datetime import timedelta

import msgspec

from mainspring.errors import InvalidValue
from mainspring.model.text import shortened

_UNITS = {
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}
_WRITTEN = re.compile(r"([0-9]{1,9})\s*/\s*([smhd])")
_MOST = 1_000_000


class Rate(msgspec.Struct, frozen=True):
    """*count* in every *per*."""

    count: int
    per: timedelta

    @property
    def interval(self) -> timedelta:
        """The time between two, if they come evenly."""
        return self.per / self.count


def rate(value: Rate | str, name: str = "rate") -> Rate:
    """Return the rate that *value* says; *name* is used in the error."""
    if isinstance(value, Rate):
        return value
    found = _WRITTEN.fullmatch(value.strip()) if isinstance(value, str) else None
    if not found or not 0 < int(found[1]) <= _MOST:
        raise InvalidValue(
            f"expected {name} to be a number from 1 to {_MOST:,} in a while, such as '20/s', '100/m' or '5/h', "
            f"got: {shortened(value)}"
        )
    return Rate(int(found[1]), _UNITS[found[2]])
