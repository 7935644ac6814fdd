"""Dead letters, and what came of replaying them, as programs are told of them."""

from __future__ import annotations

from mainspring.documents.values import Told, read
from mainspring.model.dead import Group, Replayed


def group_document(group: Group) -> dict[str, object]:
    return {
        "fingerprint": group.fingerprint,
        "task": group.task,
        "type": group.type,
        "message": group.message,
        "count": group.count,
        "first_seen": group.first_seen.isoformat(),
        "last_seen": group.last_seen.isoformat(),
        "sample": str(group.sample),
    }


def group_of(told: Told) -> Group:
    return read(told, Group)


def replay_document(report: Replayed) -> dict[str, object]:
    return {
        "found": report.found,
        "replayed": report.replayed,
        "succeeded": report.succeeded,
        "failed": report.failed,
        "cancelled": report.cancelled,
        "unfinished": report.unfinished,
        "left": report.left,
        "stopped": report.stopped,
    }
