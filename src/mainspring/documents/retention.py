"""Rules for retention as programs are told of them."""

from __future__ import annotations

from mainspring.documents.values import length
from mainspring.model.retention import Covers, RetentionRule


def covers_document(covers: Covers) -> dict[str, object]:
    return {"team": covers.team, "queue": covers.queue, "state": covers.state}


def rule_document(rule: RetentionRule) -> dict[str, object]:
    return {**covers_document(rule.covers), "age": length(rule.age), "count": rule.count}
