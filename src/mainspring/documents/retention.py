"""Rules for retention as programs are told of them."""

from __future__ import annotations

from mainspring.model.retention import Covers, RetentionRule


def covers_document(covers: Covers) -> dict[str, object]:
    return {"team": covers.team, "queue": covers.queue, "state": covers.state}


def rule_document(rule: RetentionRule) -> dict[str, object]:
    age = None if rule.age is None else rule.age.total_seconds()
    return {**covers_document(rule.covers), "age_seconds": age, "count": rule.count}
