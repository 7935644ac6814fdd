"""Queues, and tasks that are paused: what waits where, and what is ruled there."""

from __future__ import annotations

from starlette.responses import Response

from mainspring.api.policy import Where, needs
from mainspring.errors import NotFound, did_you_mean
from mainspring.model.duration import spelled
from mainspring.model.job import JobState, check_name
from mainspring.model.queue import Queue, ageing_of
from mainspring.model.team import DEFAULT_TEAM
from mainspring.model.token import Role
from mainspring.web.pages import Pages, Visit

pages = Pages()

_LOOK = needs(Role.VIEWER)
_STATES = [
    *(JobState.READY, JobState.RUNNING, JobState.SCHEDULED),
    *(JobState.RETRYING, JobState.BLOCKED, JobState.PAUSED),
]
_STRICT = ("", "off")


@pages.get("/queues", _LOOK)
def list_queues(visit: Visit) -> Response:
    """Show all queues, and the tasks that are paused to who may see what holds for all."""
    queues = visit.app.queues.list(quick=True)
    whole = visit.caller.whole
    return visit.show(
        "queues.html",
        queues=queues,
        states=_STATES,
        ruled={queue.name for queue in queues if _rules(visit, queue)},
        paused=whole.paused_tasks.list() if visit.may("viewer", Where.FLEET) else [],
        rules_tasks=visit.may("operator", Where.FLEET),
        tasks=sorted(task.name for task in whole.tasks),
    )


@pages.get("/queues/{name:path}", _LOOK)
def show_queue(visit: Visit) -> Response:
    """Show a queue, with what can be done about it."""
    name, queues = visit.path["name"], {queue.name: queue for queue in visit.app.queues.list(quick=True)}
    if name not in queues:
        raise NotFound(
            f"no queue named {name!r} has jobs, workers, ageing, an owner or a pause{did_you_mean(name, queues)}"
        )
    queue = queues[name]
    ageing = "" if queue.ageing is None else spelled(queue.ageing)
    return visit.show("queue.html", queue=queue, states=_STATES, ruled=_rules(visit, queue), ageing=ageing)


@pages.post("/queues/{name:path}/pause", needs(Role.OPERATOR, records="queue.pause"))
def pause_queue(visit: Visit) -> Response:
    name, reason = _name(visit), visit.form.words("reason")
    visit.caller.record(name, reason=reason)
    visit.app.queues.pause(name, reason=reason, by=visit.caller.actor)
    return visit.go("/queues", f"Queue {name} is paused. What runs goes on.")


@pages.post("/queues/{name:path}/resume", needs(Role.OPERATOR, records="queue.resume"))
def resume_queue(visit: Visit) -> Response:
    name = _name(visit)
    visit.caller.record(name)
    resumed = visit.app.queues.resume(name)
    return visit.go("/queues", f"Queue {name} {'goes on' if resumed else 'was not paused'}.")


@pages.post("/queues/{name:path}/set", needs(Role.OPERATOR, records="queue.set"))
def set_queue(visit: Visit) -> Response:
    name, text = _name(visit), visit.form["ageing"]
    ageing = ageing_of(None if text.lower() in _STRICT else text)
    visit.caller.record(name, ageing=None if ageing is None else ageing.total_seconds())
    visit.app.queues.set(name, ageing=ageing)
    worth = "priority is strict" if ageing is None else f"a point of priority is worth {spelled(ageing)} of waiting"
    return visit.go("/queues", f"In queue {name}, {worth}.")


@pages.post("/tasks/pause", needs(Role.OPERATOR, Where.FLEET, records="task.pause"))
def pause_task(visit: Visit) -> Response:
    name, reason, whole = visit.form["task"], visit.form.words("reason"), visit.caller.whole
    whole.tasks.to_send(name)  # which says so if there is no such task
    visit.caller.record(name, reason=reason)
    whole.paused_tasks.pause(name, reason=reason, by=visit.caller.actor)
    return visit.go("/queues", f"Task {name} is paused in all queues. What runs goes on.")


@pages.post("/tasks/resume", needs(Role.OPERATOR, Where.FLEET, records="task.resume"))
def resume_task(visit: Visit) -> Response:
    name = visit.form["task"]
    check_name(name, "task")
    visit.caller.record(name)
    resumed = visit.caller.whole.paused_tasks.resume(name)
    return visit.go("/queues", f"Task {name} {'goes on' if resumed else 'was not paused'}.")


def _rules(visit: Visit, queue: Queue) -> bool:
    """Return whether he may rule *queue*: those that are everybody's are ruled from within the default team."""
    return visit.may("operator") and (queue.team or DEFAULT_TEAM) == visit.caller.team


def _name(visit: Visit) -> str:
    name: str = visit.path["name"]
    check_name(name, "queue")
    return name
