"""Rates as people write them."""

from __future__ import annotations

import re
from datetime import timedelta

import msgspec

from mainspring.errors import InvalidValue
from mainspring.model.duration import duration
from mainspring.model.text import shortened

_TEXT = re.compile(r"(\d{1,12})\s*/\s*(\d{0,12})\s*(ms|[smhdw])")
_MOST_A_SECOND = 1_000_000
_LONGEST = timedelta(days=366)


class Rate(msgspec.Struct, frozen=True):
    """So many in each stretch of time."""

    count: int
    per: timedelta

    def __post_init__(self) -> None:
        if isinstance(self.count, bool) or not isinstance(self.count, int) or self.count < 1:
            raise InvalidValue(
                f"expected the count of a rate to be a whole number from 1 on, got: {shortened(self.count)}"
            )
        if not isinstance(self.per, timedelta) or not timedelta(0) < self.per <= _LONGEST:
            raise InvalidValue(
                f"expected a rate to be per a stretch of time of up to {_LONGEST.days} days, got: {shortened(self.per)}"
            )
        if self.per_second > _MOST_A_SECOND:
            raise InvalidValue(f"expected a rate of at most {_MOST_A_SECOND:,} a second, got: {self.per_second:,.0f}")

    @property
    def interval(self) -> timedelta:
        """The time from one to the next, if they come evenly."""
        return self.per / self.count

    @property
    def per_second(self) -> float:
        """How many that makes a second."""
        return self.count / self.per.total_seconds()


def rate(value: Rate | str, name: str = "rate") -> Rate:
    """Return the rate that *value* says: a Rate, or text such as `20/s`, `100/m`, `5/h` or `10/30s`."""
    if isinstance(value, Rate):
        return value
    parts = _TEXT.fullmatch(value.strip()) if isinstance(value, str) else None
    if parts is None:
        raise InvalidValue(
            f"expected {name} to be a whole number per unit of time, such as '20/s', '100/m', '5/h' or '10/30s', "
            f"got: {shortened(value)}"
        )
    try:
        return Rate(int(parts[1]), duration(f"{parts[2] or 1}{parts[3]}", name))
    except InvalidValue as error:
        raise InvalidValue(f"{name} {shortened(value)} makes no sense: {error}") from None
