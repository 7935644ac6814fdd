"""A worker session: one boot of a worker process, and the lease it holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from mainspring.errors import InvalidValue
from mainspring.model.job import Wish
from mainspring.model.text import storable

DEFAULT_LEASE = timedelta(seconds=15)
_SHORTEST_LEASE, _LONGEST_LEASE = timedelta(milliseconds=100), timedelta(days=36_525)


class NewSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session to open. The id is random for every boot: a host name or pid can come back, an id can't."""

    id: UUID
    name: str
    lease: timedelta = DEFAULT_LEASE
    queues: Sequence[str] = ()
    tasks: Sequence[str] = ()

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "name", storable(self.name))
        if not isinstance(self.lease, timedelta) or not _SHORTEST_LEASE <= self.lease <= _LONGEST_LEASE:
            raise InvalidValue(
                f"expected lease to be a duration such as 90s, from 100ms to 100 years, got: {self.lease}"
            )


class Session(msgspec.Struct, frozen=True):
    """A session as the database knows it."""

    id: UUID
    name: str
    lease: timedelta
    started_at: datetime
    beat_at: datetime
    alive: bool
    queues: tuple[str, ...]  # that it serves
    tasks: tuple[str, ...]  # that it knew when it began


class Beat(msgspec.Struct, frozen=True, kw_only=True):
    """What a session learns from a beat: whether it still lives, and where the database sees things differently.

    `strays` are jobs that the database thinks the session holds and the session does not know: the reply to
    their claim was lost. `lost` are jobs that the session thinks it holds and no longer does.
    """

    alive: bool
    wishes: Mapping[UUID, Wish]
    strays: Mapping[UUID, int]
    lost: Mapping[UUID, int]
