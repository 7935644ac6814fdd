"""Changes of an app's jobs, as they happen: found by looking at what is new, again and again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from mainspring.client import Client
from mainspring.model.change import Change, Kind
from mainspring.model.ids import first_id

OVERLAP = timedelta(seconds=5)
"""How long after its time a change may become visible and still be seen: a commit may be that late. By as much may the
clock of who makes a job be ahead of the database's, and the job be told at once."""

MOST = 1_000
"""Changes of each kind that one look shows, the newest."""


class Look(msgspec.Struct, frozen=True):
    """What a look has found: changes, in order, and whether there may have been more."""

    changes: Sequence[Change]
    skipped: bool


class Changes:
    """A place in the stream of changes. Each `look` goes on where the one before has ended; not for many threads."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._since: datetime | None = None
        self._seen: dict[tuple[str, UUID, int], datetime] = {}

    def look(self) -> Look:
        """Return what happened since the last look, each change once; the first look finds nothing."""
        store = self._client.store
        now = store.now()
        first, since = self._since is None, self._since or now - OVERLAP
        found = store.changes(since, now + OVERLAP, MOST)
        new = [change for change in found if change.mark not in self._seen]
        skipped = not first and self._overflows(found, first_id(now))
        self._since = now - OVERLAP
        self._seen = {mark: at for mark, at in self._seen.items() if at >= self._since - OVERLAP}
        self._seen |= {change.mark: now for change in found}
        visible = [change for change in new if self._client.sees(change.team)]
        return Look([] if first else visible, skipped)

    def _overflows(self, found: Sequence[Change], ahead: UUID) -> bool:
        """Return whether one kind has filled its room with what is new, so that there may be more behind it.

        Or with jobs from *ahead*, made by a clock that is, which stand before what is new.
        """
        kinds: dict[str, list[Change]] = {}
        for change in found:
            kinds.setdefault(change.change, []).append(change)
        created = kinds.get(Kind.CREATED, [])
        return any(len(some) >= MOST and some[0].mark not in self._seen for some in kinds.values()) or (
            len(created) >= MOST and any(one.id > ahead for one in created)
        )
