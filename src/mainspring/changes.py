"""Changes of an app's jobs, as they happen: found by looking at what is new, again and again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from mainspring.client import Client
from mainspring.model.change import Change

OVERLAP = timedelta(seconds=5)
"""How long after its time a change may become visible and still be seen: a commit may be that late."""

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
        found = store.changes(since, MOST)
        new = [change for change in found if change.mark not in self._seen]
        skipped = not first and self._overflows(found)
        self._since = now - OVERLAP
        self._seen = {mark: at for mark, at in self._seen.items() if at >= self._since - OVERLAP}
        self._seen |= {change.mark: now for change in new}
        visible = [change for change in new if self._client.sees(change.team)]
        return Look([] if first else visible, skipped)

    def _overflows(self, found: Sequence[Change]) -> bool:
        """Return whether one kind has filled its room with what is new, so that there may be more behind it."""
        kinds: dict[str, list[Change]] = {}
        for change in found:
            kinds.setdefault(change.change, []).append(change)
        return any(len(some) >= MOST and some[0].mark not in self._seen for some in kinds.values())
