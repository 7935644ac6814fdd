"""Breakers of an app's database: looked at, tripped and reset for the whole fleet."""

from __future__ import annotations

from collections.abc import Sequence

from mainspring.client import Client
from mainspring.model.breaker import TRIP, BreakerStatus, Phase, Trip, check_breaker_key
from mainspring.model.duration import Duration, duration
from mainspring.service import person
from mainspring.twin import twin


class Breakers:
    """All breakers. One needs no making: it is there when a task names it, and closed until something has failed.

    They hold for the whole fleet, so a team other than the default one sees none.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def trip(
        self, key: str, *, lasting: Duration = TRIP, reason: str | None = None, by: str | None = None
    ) -> BreakerStatus:
        """Open the breaker: no job starts under it for so long. Then probes find out whether the others may go on.

        *by* is who says so: the user of this process and its host, unless told.
        """
        self._client.check_of_fleet("trip a breaker, which may hold back anybody's jobs")
        who = person() if by is None else by
        wanted = Trip(key=key, lasting=duration(lasting, "lasting"), by=who, reason=reason)
        return self._client.store.trip_breaker(wanted)

    def reset(self, key: str, *, all: bool = False) -> bool:  # noqa: A002 - as on the command line
        """Close the breaker; return whether it was open or half-open.

        Jobs that wait for it go on one after the other, the more of them succeed the faster. With *all* they go on all
        at once: for a breaker that was removed, or a downstream that can take it.
        """
        check_breaker_key(key)
        self._client.check_of_fleet("reset a breaker, which may hold back anybody's jobs")
        return self._client.store.reset_breaker(key, all_at_once=all)

    def get(self, key: str) -> BreakerStatus:
        """Return how the breaker stands; one that nothing is known of is closed."""
        check_breaker_key(key)
        found = self._client.store.breakers(key) if self._client.of_fleet else []
        return found[0] if found else BreakerStatus(key=key, phase=Phase.CLOSED)

    def list(self) -> Sequence[BreakerStatus]:
        """Return the breakers under which something has failed lately, or that a person tripped, by key."""
        return self._client.store.breakers() if self._client.of_fleet else []

    atrip = twin(trip)
    areset = twin(reset)
    aget = twin(get)
    alist = twin(list)  # noqa: A003 - the method above
