"""Retention: rules for how long finished jobs are kept, of a team, or of all."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query
from pydantic import ConfigDict, Field, StrictInt
from starlette.responses import Response

from mainspring.api.callers import Asking
from mainspring.api.documents import Document, Duration, Name, Request
from mainspring.api.pages import QueueName
from mainspring.api.policy import needs
from mainspring.api.problems import Problem
from mainspring.api.routing import Routes, answer, nothing
from mainspring.documents.retention import rule_document
from mainspring.model.duration import duration
from mainspring.model.job import JobState
from mainspring.model.retention import Covers, RetentionRule
from mainspring.model.token import Role

routes = Routes("retention")

Ending = Literal["succeeded", "failed", "cancelled", "expired"]


class RetentionRequest(Request):
    """How long jobs are kept, or how many: of a queue, of those that ended in a state, or of all without these."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"queue": "mail", "state": "succeeded", "age": "7d"}, {"age": "90d", "count": 100_000}]
        }
    )

    queue: Name | None = None
    state: Ending | None = None
    age: Duration | None = None
    count: Annotated[StrictInt, Field(ge=1, le=100_000_000)] | None = None


class RetentionDocument(Document):
    """A rule for how long finished jobs are kept."""

    team: str | None = Field(description="Whose jobs it covers; null for everybody's.")
    queue: str | None
    state: Ending | None
    age: str | None = Field(description="Null: as long as jobs that no rule covers.")
    count: int | None


class RetentionRules(Document):
    """Rules, the most precise first: of those that cover a job that one counts."""

    items: list[RetentionDocument]


@routes.get("/retention", needs(Role.ADMIN), gives=RetentionRules)
def list_retention(caller: Asking) -> Response:
    """List the rules for the jobs of the team; all, for an admin everywhere who names no team."""
    return answer({"items": [rule_document(rule) for rule in caller.reach.retention.list()]})


@routes.put("/retention", needs(Role.ADMIN, records="retention.set"), gives=RetentionDocument)
def set_retention(caller: Asking, wanted: RetentionRequest) -> Response:
    """Say how long finished jobs are kept, in place of a rule that covers the same.

    It is about jobs of the team; for an admin everywhere who names no team, about everybody's.
    """
    covers = _covers(caller.reach.client.scope, wanted.queue, wanted.state)
    rule = RetentionRule(covers, None if wanted.age is None else duration(wanted.age, "age"), wanted.count)
    rule.check()
    caller.record(covers, rule=str(rule))
    stored = caller.reach.retention.set(queue=wanted.queue, state=wanted.state, age=rule.age, count=rule.count)
    return answer(rule_document(stored))


@routes.delete("/retention", needs(Role.ADMIN, records="retention.remove"), status=204)
def remove_retention(
    caller: Asking,
    queue: QueueName = None,
    state: Annotated[Ending | None, Query(description="Of the rule for jobs that ended so.")] = None,
) -> Response:
    """Take back the rule that covers just that. Its jobs go by the next that fits."""
    retention = caller.reach.retention
    covers = _covers(caller.reach.client.scope, queue, state)
    if covers not in {rule.covers for rule in retention.list()}:
        raise Problem(404, "retention-rule-not-found", f"there is no rule for just that: {covers}")
    caller.record(covers)
    retention.remove(queue=queue, state=state)
    return nothing()


def _covers(team: str | None, queue: str | None, state: str | None) -> Covers:
    return Covers(team, queue, None if state is None else JobState(state))
