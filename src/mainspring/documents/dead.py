"""Dead letters, and what came of replaying them, as programs are told of them."""

from __future__ import annotations

from datetime import datetime

from mainspring.documents.values import Told, instant, read
from mainspring.model.dead import Group, Meant, Replayed


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


def meant_document(meant: Meant) -> dict[str, object]:
    return {"count": meant.letters, "finished_until": instant(meant.finished_until)}


def meant_of(told: Told) -> Meant:
    until = told["finished_until"]
    return Meant(int(told["count"]), None if until is None else read(until, datetime))


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
