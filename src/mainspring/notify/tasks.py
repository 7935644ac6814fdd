"""The tasks that tell people. What they tell is their argument; whom, and with which secret, stands with their job."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Protocol
from uuid import UUID

from mainspring.errors import Undeliverable
from mainspring.model.channel import Channel, Email, Webhook, decode_channels
from mainspring.model.job import NOTIFY_QUEUE
from mainspring.model.limits import Limit
from mainspring.model.notice import EMAIL, WEBHOOK
from mainspring.model.retry import Retry
from mainspring.model.task import Task
from mainspring.notify import email, webhook
from mainspring.notify.delivery import Delivery

RETRY = Retry(max_attempts=12, base="10s", cap="2h", never=(Undeliverable,))
"""Twelve tries within some five hours: a receiver may be away for as long as it takes to mend it."""

_MAILS = Limit("mainspring.email:{team}", rate="60/m")
_REQUESTS = Limit("mainspring.webhook:{to}", concurrency=4)
"""One receiver that takes its time must not take all slots of the workers."""

_TIMEOUT = timedelta(seconds=60)


class Attempt(Protocol):
    """What the tasks need of their attempt."""

    details: dict[str, Any]

    @property
    def job_id(self) -> UUID: ...

    @property
    def notify(self) -> str | None: ...


def notify_tasks(delivery: Delivery) -> list[Task]:
    """Return the tasks that tell people by *delivery*."""

    def tell_by_webhook(ctx: Attempt, to: str, team: str, notice: dict[str, Any]) -> None:
        channel = _channel(ctx)
        if not isinstance(channel, Webhook):
            raise Undeliverable(f"the job does not say where at {to} the webhook is")
        webhook.send(channel, webhook.Letter(ctx.job_id, team, notice), delivery, ctx.details)

    def tell_by_email(ctx: Attempt, to: str, team: str, notice: dict[str, Any]) -> None:
        channel = _channel(ctx)
        if not isinstance(channel, Email):
            raise Undeliverable(f"the job of team {team} does not say how to mail to {to}")
        ctx.details |= email.send(channel, ctx.job_id, notice, delivery)

    common: dict[str, Any] = {"queue": NOTIFY_QUEUE, "context": "ctx", "retry": RETRY, "timeout": _TIMEOUT}
    return [
        Task(name=WEBHOOK, handler=tell_by_webhook, limits=[_REQUESTS], **common),
        Task(name=EMAIL, handler=tell_by_email, limits=[_MAILS], **common),
    ]


def _channel(ctx: Attempt) -> Channel | None:
    return next(iter(decode_channels(ctx.notify)), None)
