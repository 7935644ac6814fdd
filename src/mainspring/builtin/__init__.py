"""Tasks that every program knows without having written them. Their names begin with `mainspring.`."""

from __future__ import annotations

from collections.abc import Mapping

from mainspring.builtin.command import COMMAND
from mainspring.builtin.http import HTTP
from mainspring.errors import InvalidValue
from mainspring.model.task import Task
from mainspring.model.text import shortened
from mainspring.notify.delivery import Delivery, Secret
from mainspring.notify.email import check_delivery
from mainspring.notify.tasks import notify_tasks
from mainspring.outbound import Outbound


def all_builtin() -> list[Task]:
    """Return all of them: whoever enqueues one has its arguments checked, wherever it will run."""
    return [HTTP, COMMAND]


def builtin_tasks(settings: Mapping[str, object], secret: Secret) -> list[Task]:
    """Return those that a node with these *settings* serves beside its program's own.

    Those that tell people are not for anybody to enqueue: whoever could say what they tell, and to whom, could sign it
    with the secrets of others.
    """
    Outbound.configured()  # a list of hosts that means nothing is told now, and not by every request
    delivery = settings.get("delivery") or Delivery.configured()
    if not isinstance(delivery, Delivery):
        raise InvalidValue(f"expected delivery to be a Delivery, got: {shortened(delivery)}")
    check_delivery(delivery)
    commands = [COMMAND] if settings.get("commands") else []
    return [HTTP, *commands, *notify_tasks(delivery.knowing(secret))]
