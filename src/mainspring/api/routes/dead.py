"""Dead letters: failed jobs by their cause, and what is done about them."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Query
from starlette.responses import Response

from mainspring.api.callers import Asking
from mainspring.api.documents import NO_NUL, ChosenRequest, CountDocument, Groups, JobPage, LettersDocument
from mainspring.api.pages import Limit, QueueName, TaskName, page
from mainspring.api.policy import needs
from mainspring.api.routing import Routes, answer
from mainspring.dead import Chosen
from mainspring.documents.dead import group_document, meant_document
from mainspring.documents.jobs import job_document
from mainspring.model.token import Role

routes = Routes("dead letters")

GroupText = Annotated[
    str | None,
    Query(min_length=1, max_length=128, pattern=NO_NUL, description="A fingerprint, or the beginning of one."),
]


@routes.get("/dead/groups", needs(Role.VIEWER), gives=Groups)
def list_groups(caller: Asking, queue: QueueName = None, task: TaskName = None, limit: Limit = 50) -> Response:
    """List dead letters by their cause, the one seen last first."""
    return answer({"items": [group_document(group) for group in caller.app.dead.groups(queue, task, limit)]})


@routes.get("/dead/count", needs(Role.VIEWER), gives=LettersDocument)
def count_letters(caller: Asking, group: GroupText = None, queue: QueueName = None, task: TaskName = None) -> Response:
    """Count dead letters. To act on no others than these, pass on `finished_until` with what is chosen."""
    return answer(meant_document(caller.app.dead.meant(group, queue, task)))


@routes.get("/dead", needs(Role.VIEWER), gives=JobPage)
def list_letters(
    caller: Asking,
    group: GroupText = None,
    queue: QueueName = None,
    task: TaskName = None,
    before: Annotated[UUID | None, Query(description="Only those older than this one, for the next page.")] = None,
    limit: Limit = 50,
) -> Response:
    """List dead letters, newest job first."""
    found = caller.app.dead.list(group, queue, task, before, limit)
    return answer(page(found, limit, lambda job: job_document(job.snapshot, caller.keys), lambda job: job.id))


@routes.post("/dead/replay", needs(Role.OPERATOR, records="dead.replay"), gives=CountDocument)
def replay_letters(caller: Asking, wanted: ChosenRequest) -> Response:
    """Run dead letters again, all at once.

    Where they are many and it is not certain that they will succeed, `mainspring dead replay` tries a few first.
    """
    caller.record(wanted.group or "dead letters", **_told(wanted))
    found, done = caller.app.dead.revive(reason=wanted.reason, by=caller.actor, **_chosen(wanted))
    return answer({"found": found, "done": done})


@routes.post("/dead/discard", needs(Role.OPERATOR, records="dead.discard"), gives=CountDocument)
def discard_letters(caller: Asking, wanted: ChosenRequest) -> Response:
    """Give dead letters up. They count as cancelled, and stay in history until they are pruned."""
    caller.record(wanted.group or "dead letters", **_told(wanted))
    done = caller.app.dead.discard(reason=wanted.reason, by=caller.actor, **_chosen(wanted))
    return answer({"found": done, "done": done})


def _chosen(wanted: ChosenRequest) -> Chosen:
    return {
        "group": wanted.group,
        "ids": wanted.ids,
        "queue": wanted.queue,
        "task": wanted.task,
        "finished_until": wanted.finished_until,
    }


def _told(wanted: ChosenRequest) -> dict[str, object]:
    ids = None if wanted.ids is None else [str(one) for one in wanted.ids[:20]]
    return {"ids": ids, "queue": wanted.queue, "task": wanted.task, "reason": wanted.reason}
