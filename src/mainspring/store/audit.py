"""Audit: entries put behind each other, and the whole chain looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from msgspec.structs import replace

from mainspring.clock import secret_bytes
from mainspring.errors import StoreError
from mainspring.model.audit import Check, Entry, Head, Record, Verdict, extend
from mainspring.store import rows
from mainspring.store.database import Database, Runner

_PAGE = 1_000

Named = Sequence[tuple[UUID, Entry]]


def record(db: Database, entries: Sequence[Entry]) -> None:
    """See `protocol.Audits.record_audit`."""
    given = named(entries)
    if given:
        db.transact(lambda tx: append(tx, given))


def named(entries: Sequence[Entry]) -> Named:
    """Return *entries* with an id each, made before the first try, so that one whose reply was lost is known again."""
    return [(UUID(bytes=secret_bytes(16), version=4), entry) for entry in entries]


def of_standing(given: Named, standing: Mapping[UUID, UUID]) -> Named:
    """Return entries about jobs to be about those that are *standing* for them: no job has the id of the others."""
    targets = {str(asked): str(stands) for asked, stands in standing.items()}
    return [
        (entry_id, replace(entry, target=targets[entry.target]) if entry.target in targets else entry)
        for entry_id, entry in given
    ]


def append(tx: Runner, given: Named) -> None:
    """Put entries at the end of the log.

    The last thing that a transaction does: until its commit, nobody else can put anything there.
    """
    if tx.in_doubt and tx.run("audited", entry=given[0][0]):
        return  # by an earlier try, whose reply was lost
    for now, *head in tx.run("lock_audit"):
        records, end = extend(Head(*head), given, now)
        tx.run("extend_audit", records=rows.audit(records), entries=end.entries, hash=end.hash)
        return
    raise StoreError("the audit log has lost its end, so nothing can be put there; restore its head from a backup")


def page(db: Database, team: str | None, before: int | None, limit: int) -> list[Record]:
    """See `protocol.Audits.audit`."""
    given = {"before": before, "limit": max(0, limit)}
    found = db.read("page_audit", **given) if team is None else db.read("page_audit_of", team=team, **given)
    return [Record(*row) for row in found]


def verify(db: Database) -> Verdict:
    """See `protocol.Audits.verify_audit`."""
    check = Check()
    while True:
        # Before the look, not after it: others may go on writing, and what they add in between is not missing.
        ends = [Head(*row) for row in db.read("audit_head")]
        seen = [Record(*row) for row in db.read("walk_audit", after=check.head.entries, limit=_PAGE)]
        check.see(seen)
        if not seen or check.verdict is not None:
            return check.end(ends[0] if ends else None)
