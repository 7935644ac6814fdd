"""Channels from JSON: whom to tell."""

from __future__ import annotations

from collections.abc import Iterable

from mainspring.api.documents import EmailRequest, WebhookRequest
from mainspring.model.channel import DEFAULT_EVENTS, Channel, Email, Webhook


def channels(wanted: Iterable[WebhookRequest | EmailRequest]) -> list[Channel]:
    """Return the channels that *wanted* describes."""
    return [channel(one) for one in wanted]


def channel(wanted: WebhookRequest | EmailRequest) -> Channel:
    """Return the channel that *wanted* describes."""
    on = wanted.on or DEFAULT_EVENTS
    if isinstance(wanted, WebhookRequest):
        return Webhook(wanted.url, on=on, secret=wanted.secret)
    return Email(wanted.to, on=on, subject=wanted.subject, text=wanted.text)
