"""The audit log of an app's database: written before what is asked for is done, read, and looked at for gaps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from mainspring.client import Client, check_limit
from mainspring.errors import InvalidValue
from mainspring.model.audit import Entry, Record, Verdict
from mainspring.model.text import shortened
from mainspring.twin import twin


class Audit:
    """The whole log; within a team, the team's entries."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def record(self, entries: Iterable[Entry]) -> None:
        """Put *entries* at the end of the log, all or none. Within a team they are the team's."""
        scope = self._client.scope
        given = [entry if scope is None else replace(entry, team=scope) for entry in entries]
        self._client.store.record_audit(given)

    def list(self, *, team: str | None = None, before: int | None = None, limit: int = 50) -> Sequence[Record]:
        """Return entries, the last first; pass the number of the last one shown as *before* for the next page."""
        check_limit(limit)
        if before is not None and (isinstance(before, bool) or not isinstance(before, int)):
            raise InvalidValue(f"expected before to be the number of an entry, got: {shortened(before)}")
        scope = self._client.scope
        if scope is not None and team not in (None, scope):
            return []
        return self._client.store.audit(scope or team, before, limit)

    def verify(self) -> Verdict:
        """Look at the whole log, whosever the entries are, and say whether it is as it was written."""
        return self._client.store.verify_audit()

    arecord = twin(record)
    alist = twin(list)  # noqa: A003 - the method above
    averify = twin(verify)
