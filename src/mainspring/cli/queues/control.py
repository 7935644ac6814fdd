"""`mainspring queues pause`, `resume` and `set`."""

from __future__ import annotations

from datetime import timedelta

from mainspring.app import DEFAULT_URL
from mainspring.cli.options import AsJson, Url
from mainspring.cli.output import say, say_json
from mainspring.cli.pauses import By, Reason, resume_each, tell_paused
from mainspring.cli.queues.database import queues_at
from mainspring.cli.queues.options import Ageing, QueueName, QueueNames
from mainspring.cli.times import span
from mainspring.cli.values import length
from mainspring.errors import InvalidValue
from mainspring.model.job import check_name
from mainspring.model.queue import Pausable, ageing_of
from mainspring.model.text import shortened


def pause(
    names: QueueNames, reason: Reason = None, by: By = None, url: Url = DEFAULT_URL, as_json: AsJson = False
) -> None:
    """Let no worker claim from queues until they are resumed. What runs goes on."""
    for name in names:
        check_name(name, "queue")  # all of them first, so that nothing is half done
    with queues_at(url) as queues:
        paused = [queues.pause(name, reason=reason, by=by) for name in dict.fromkeys(names)]
    tell_paused(paused, as_json)


def resume(names: QueueNames, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Let workers claim from queues again."""
    with queues_at(url) as queues:
        resume_each(
            Pausable.QUEUE, names, queues.resume, lambda: [one.name for one in queues.list() if one.paused], as_json
        )


def set_queue(name: QueueName, ageing: Ageing, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Say how urgent jobs of a queue go before others: strictly, or with ageing, so that none starves."""
    wanted = _read_ageing(ageing)
    with queues_at(url) as queues:
        queues.set(name, ageing=wanted)
    if as_json:
        say_json({"name": name, "ageing_seconds": None if wanted is None else wanted.total_seconds()})
    elif wanted is None:
        say(f"{name}: priority is strict")
    else:
        say(f"{name}: a point of priority is worth {span(wanted)} of waiting")


def _read_ageing(text: str) -> timedelta | None:
    if text.lower() == "off":
        return None
    try:
        return ageing_of(length(text, "--ageing"))
    except InvalidValue:
        raise InvalidValue(
            "expected --ageing to be a length of time like 10m, of 1s or longer, or off for strict priority, "
            f"got: {shortened(text)}"
        ) from None
