"""Notifications of teams as programs are told of them."""

from __future__ import annotations

from mainspring.model.channel import Email, Webhook
from mainspring.model.notice import Rule


def rule_document(rule: Rule) -> dict[str, object]:
    """Return *rule* for programs, without what is secret: where exactly a webhook leads may be, too."""
    channel = rule.channel
    where: dict[str, object] = {"kind": "email", "to": list(channel.to)} if isinstance(channel, Email) else {}
    if isinstance(channel, Webhook):
        where = {"kind": "webhook", "place": channel.place, "secrets": len(channel.secrets)}
    return {
        "team": rule.team,
        "id": rule.id,
        **where,
        "on": list(channel.on),
        "created_at": rule.created_at.isoformat(),
        "changed_at": rule.changed_at.isoformat(),
    }
