"""Rules for retention as programs are told of them."""

from __future__ import annotations

from mainspring.documents.values import Told, length, length_of, read
from mainspring.model.retention import Covers, RetentionRule


def covers_document(covers: Covers) -> dict[str, object]:
    return {"team": covers.team, "queue": covers.queue, "state": covers.state}


def rule_document(rule: RetentionRule) -> dict[str, object]:
    return {**covers_document(rule.covers), "age": length(rule.age), "count": rule.count}


def rule_of(told: Told) -> RetentionRule:
    return RetentionRule(read(told, Covers), length_of(told["age"]), told["count"])
