"""Trial: a word to a channel from here and now, to see whether it arrives."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from mainspring.clock import SystemClock
from mainspring.errors import Undelivered
from mainspring.model.channel import Webhook
from mainspring.model.notice import Rule, written
from mainspring.model.outcome import RetryAfter
from mainspring.notify import email, webhook
from mainspring.notify.delivery import Delivery


def send_test(rule: Rule, notice_id: UUID, delivery: Delivery) -> dict[str, object]:
    """Send a word to the channel of *rule*; return what is kept of the answer, or raise Undelivered."""
    at = written(SystemClock().now())
    notice = {"event": "test", "team": rule.team, "at": at, "headline": f"a test of notification {rule.id}"}
    if not isinstance(rule.channel, Webhook):
        return email.send(rule.channel, notice_id, notice, delivery)
    details: dict[str, Any] = {}
    try:
        webhook.send(rule.channel, webhook.Letter(notice_id, rule.team, notice), delivery, details)
    except RetryAfter as error:
        raise Undelivered(str(error)) from error
    return details
