"""How notifications look."""

from __future__ import annotations

from mainspring.documents.notifications import rule_document
from mainspring.documents.told import ToldNotification, as_told
from mainspring.model.notice import Rule


def told_rule(rule: Rule | ToldNotification) -> ToldNotification:
    """Return *rule* as programs are told of it, without what is secret."""
    return as_told(rule_document(rule), ToldNotification) if isinstance(rule, Rule) else rule


def place(rule: ToldNotification) -> str:
    """Return in short whom it tells."""
    return rule.place or ", ".join(rule.to or ())
