"""Workflows: jobs that are made of others, their members, and end when those have ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

import msgspec

from mainspring.errors import InvalidValue
from mainspring.model.failure import Failure
from mainspring.model.job import Job, JobState, NewJob, Wish
from mainspring.model.text import counted

_NAMED = 3


class Undo(msgspec.Struct, frozen=True):
    """A job that undoes what a member has done, if the workflow does not succeed."""

    member: UUID
    job: NewJob


class Plan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is to become of a workflow's members and their results.

    One that `gathers` has the results of all its members for its own, in the order of their ids; another has that of
    its `output`. It has `begun` when its members exist: until then its job waits, and is run, as any other.
    """

    begun: bool = False
    gathers: bool = False
    keyless: bool = False  # its jobs have no keys, whatever their task says
    output: UUID | None = None
    undo: tuple[Undo, ...] = ()


class NewWorkflow(msgspec.Struct, frozen=True):
    """A workflow that is not stored yet, and its members, each after its parents."""

    job: NewJob
    members: tuple[NewJob, ...]

    def __post_init__(self) -> None:
        if not self.members:
            raise InvalidValue("expected a workflow to have members, got none")
        if self.job.parents:
            # Nobody would wait for them: its members begin as they are stored.
            raise InvalidValue("expected the parents of a workflow to be those of its first members, got its own")


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """How the members of a workflow have ended: how many in which way, and some of those that ended badly."""

    counts: Mapping[JobState, int]
    failed: Sequence[Job] = ()

    @property
    def failure(self) -> Failure | None:
        """Why the workflow has failed, if members have: a sentence that names some of them."""
        failed = self.counts.get(JobState.FAILED, 0) + self.counts.get(JobState.EXPIRED, 0)
        if not failed:
            return None
        named = "; ".join(_told(job) for job in self.failed[:_NAMED])
        more = f"; and {failed - _NAMED:,} more" if failed > _NAMED else ""
        total = counted(sum(self.counts.values()), "job")
        return Failure(type="WorkflowFailed", message=f"{failed:,} of {total} failed: {named}{more}")


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Plan)


def encode_plan(plan: Plan) -> str:
    """Return *plan* as it is stored."""
    return _encoder.encode(plan).decode()


def decode_plan(text: str) -> Plan:
    """Return the plan that is stored as *text*."""
    return _decoder.decode(text)


def plan_of(job: Job) -> Plan | None:
    """Return the plan of *job*, if it is a workflow."""
    return None if job.plan is None else decode_plan(job.plan)


def has_begun(job: Job) -> bool:
    """Return whether *job* is a workflow that has members."""
    plan = plan_of(job)
    return plan is not None and plan.begun


def standing(job: Job) -> str:
    """Return how *job* stands, in a word or two: its state, but a workflow that waits for its members is under way."""
    if job.state is not JobState.BLOCKED or not has_begun(job):
        return job.state
    return "being cancelled" if job.wish is Wish.CANCEL else "under way"


def why_failed(job: Job) -> str:
    """Return in one line why *job* did not succeed."""
    lines = job.failure.message.splitlines() if job.failure else []
    return lines[0] if lines else job.reason or job.state


def _told(job: Job) -> str:
    return f"{job.task} ({job.id}): {why_failed(job)}"
