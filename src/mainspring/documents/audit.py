"""An entry of the audit log as programs are told of it."""

from __future__ import annotations

from mainspring.documents.values import Told, plain, read, stored
from mainspring.model.audit import Record


def record_document(record: Record) -> dict[str, object]:
    return {
        "number": record.seq,
        "id": str(record.id),
        "at": record.at.isoformat(),
        "actor": record.actor,
        "team": record.team,
        "action": record.action,
        "target": record.target,
        "details": plain(record.details),
        "hash": record.hash,
    }


def record_of(told: Told) -> Record:
    return read({**told, "seq": told["number"], "details": stored(told["details"])}, Record)
