"""Queues and tasks: what waits where, and what is paused for the whole fleet."""

from __future__ import annotations

from starlette.responses import Response

from mainspring.api.callers import Asking
from mainspring.api.documents import PauseDocument, Pauses, QueueRequest, Queues, ReasonRequest, ResumedDocument, Tasks
from mainspring.api.pages import NameInPath
from mainspring.api.policy import Where, needs
from mainspring.api.routing import Routes, answer, nothing
from mainspring.documents.queues import pause_document, queue_document
from mainspring.model.queue import ageing_of
from mainspring.model.token import Role

routes = Routes("queues")


@routes.get("/queues", needs(Role.VIEWER), gives=Queues)
def list_queues(caller: Asking) -> Response:
    """List the queues that have unfinished jobs, a worker, ageing on or a pause, by name.

    Jobs are counted up to so many that this takes no time; `more` says of which states there are more.
    """
    return answer({"items": [queue_document(queue) for queue in caller.app.queues.list(quick=True)]})


@routes.put("/queues/{name:path}", needs(Role.OPERATOR, records="queue.set"), status=204)
def set_queue(caller: Asking, name: NameInPath, wanted: QueueRequest) -> Response:
    """Rule a queue: with ageing, each point of priority is worth so much waiting, so that no job starves."""
    ageing = ageing_of(wanted.ageing)
    caller.record(name, ageing=None if ageing is None else ageing.total_seconds())
    caller.app.queues.set(name, ageing=ageing)
    return nothing()


@routes.post("/queues/{name:path}/pause", needs(Role.OPERATOR, records="queue.pause"), gives=PauseDocument)
def pause_queue(caller: Asking, name: NameInPath, why: ReasonRequest | None = None) -> Response:
    """Let no worker claim from a queue until it is resumed; what runs goes on."""
    reason = None if why is None else why.reason
    caller.record(name, reason=reason)
    return answer(pause_document(caller.app.queues.pause(name, reason=reason, by=caller.actor)))


@routes.post("/queues/{name:path}/resume", needs(Role.OPERATOR, records="queue.resume"), gives=ResumedDocument)
def resume_queue(caller: Asking, name: NameInPath) -> Response:
    """Let workers claim from a queue again."""
    caller.record(name)
    return answer({"name": name, "resumed": caller.app.queues.resume(name)})


@routes.get("/tasks", needs(Role.VIEWER), gives=Tasks)
def list_tasks(caller: Asking) -> Response:
    """List the tasks that the server knows, by name; none if it was started without an app."""
    items = [
        {"name": task.name, "queue": task.queue, "priority": task.priority, "parameters": list(task.parameters)}
        for task in sorted(caller.app.tasks, key=lambda task: task.name)
    ]
    return answer({"items": items})


@routes.get("/paused-tasks", needs(Role.VIEWER, Where.FLEET), gives=Pauses)
def list_paused(caller: Asking) -> Response:
    """List the tasks that are paused, by name."""
    return answer({"items": [pause_document(pause) for pause in caller.whole.paused_tasks.list()]})


@routes.post(
    "/tasks/{name:path}/pause",
    needs(Role.OPERATOR, Where.FLEET, records="task.pause"),
    gives=PauseDocument,
)
def pause_task(caller: Asking, name: NameInPath, why: ReasonRequest | None = None) -> Response:
    """Let no worker claim jobs of a task until it is resumed; what runs goes on."""
    reason = None if why is None else why.reason
    caller.whole.tasks.to_send(name)
    caller.record(name, reason=reason)
    return answer(pause_document(caller.whole.paused_tasks.pause(name, reason=reason, by=caller.actor)))


@routes.post(
    "/tasks/{name:path}/resume", needs(Role.OPERATOR, Where.FLEET, records="task.resume"), gives=ResumedDocument
)
def resume_task(caller: Asking, name: NameInPath) -> Response:
    """Let workers claim the jobs of a task again."""
    caller.record(name)
    return answer({"name": name, "resumed": caller.whole.paused_tasks.resume(name)})
