"""Documents of the API: what requests may say, which is checked, and what answers say, which is tested."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    StrictBool,
    StrictInt,
    WithJsonSchema,
)

from mainspring.api import values
from mainspring.model.job import JobState

NO_NUL = r"^[^\x00]*$"
Name = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.:/-]*$")]
Key = Annotated[str, Field(min_length=1, max_length=512, pattern=NO_NUL)]
Reason = Annotated[str, Field(max_length=2_000, pattern=NO_NUL)]
Priority = Annotated[int | str, PlainValidator(values.priority), WithJsonSchema(values.PRIORITY_SCHEMA)]
Duration = Annotated[timedelta, PlainValidator(values.length), WithJsonSchema(values.LENGTH_SCHEMA)]
Instant = Annotated[AwareDatetime, AfterValidator(values.within_reach)]
Count = Annotated[int, Field(ge=0)]

LARGEST_BULK = 1_000

_WRITE_ONLY = {"writeOnly": True}
_EXAMPLE_ID = "019a8e2c-6d1b-7c3e-8f4a-2b5d6e7f8091"


class Request(BaseModel):
    """What a request may say; anything else is refused. A name with null is as good as left out."""

    model_config = ConfigDict(extra="forbid")


class Document(BaseModel):
    """What an answer says. It may come to say more."""


class ProblemDocument(Document):
    """What went wrong, as RFC 9457 has it."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "type": "urn:mainspring:job-not-found",
                "title": "Not Found",
                "status": 404,
                "detail": f"no job has the id {_EXAMPLE_ID}; it may have been pruned",
            }
        }
    )

    type: str = Field(description="Which problem it is; it stays the same.")
    title: str
    status: int
    detail: str = Field(description="What happened, in one sentence.")
    expected: str | None = None
    got: str | None = None
    retry_after: float | None = Field(None, description="Seconds after which to ask again.")
    errors: list[Mistake] | None = Field(None, description="All mistakes in the request, where there are several.")
    id: str | None = Field(None, description="Under which the server's log has the error.")


class Mistake(Document):
    """One mistake in a request."""

    at: str
    expected: str
    got: str


class ParentRequest(Request):
    """A job that another comes after, and what that does if it fails."""

    job: UUID
    if_failed: Literal["cancel", "run", "wait"] = "cancel"


EventName = Literal["success", "failure", "retry", "late", "missed", "recovered"]
Events = Annotated[
    list[EventName], Field(min_length=1, max_length=6, description="What to tell of; else failure and recovered.")
]
Address = Annotated[str, Field(min_length=3, max_length=254, pattern=r"^[!-~]+@[!-~]+$")]
ChannelSecret = Annotated[str, Field(min_length=1, max_length=1_000, pattern=NO_NUL, json_schema_extra=_WRITE_ONLY)]


class WebhookRequest(Request):
    """A URL to tell, by a POST that is signed if there is a secret, or two while one takes the place of the other."""

    kind: Literal["webhook"]
    url: Annotated[
        str,
        # Its beginning is checked here already, for what is refused here is not shown.
        Field(max_length=2_000, pattern=r"^[Hh][Tt][Tt][Pp][Ss]?://[^\x00-\x20]+$", json_schema_extra=_WRITE_ONLY),
    ]
    on: Events | None = None
    secret: ChannelSecret | Annotated[list[ChannelSecret], Field(min_length=1, max_length=2)] | None = Field(
        None, description="What to sign with: `secret://name`, or the secret itself."
    )


class EmailRequest(Request):
    """People to tell by mail. The subject and the text are templates that take the place of ours."""

    kind: Literal["email"]
    to: Address | Annotated[list[Address], Field(min_length=1, max_length=50)]
    on: Events | None = None
    subject: Annotated[str, Field(max_length=200)] | None = None
    text: Annotated[str, Field(max_length=10_000, pattern=NO_NUL)] | None = None


ChannelRequest = Annotated[WebhookRequest | EmailRequest, Field(discriminator="kind")]
Notify = Annotated[
    list[ChannelRequest], Field(max_length=20, description="Whom to tell of what becomes of it. Never shown again.")
]


class JobRequest(Request):
    """A job to create."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"task": "send_welcome", "args": [42], "kwargs": {"language": "de"}, "queue": "mail"},
                {"task": "send_welcome", "args": [43], "run_after": "10m", "key": "welcome-43"},
                {
                    "task": "mainspring.command",
                    "args": [["backup", "--all"]],
                    "notify": [{"kind": "email", "to": "ops@example.org", "on": ["failure"]}],
                },
            ]
        }
    )

    task: Name
    args: Annotated[list[Any], Field(max_length=1_000)] = []
    kwargs: Annotated[dict[str, Any], Field(max_length=1_000)] = {}
    queue: Name | None = None
    priority: Priority | None = None
    run_after: Duration | None = None
    run_at: Instant | None = None
    expires: Duration | None = Field(None, description="How long after its due time it may start.")
    key: Key | None = Field(None, description="No two unfinished jobs have the same; null takes the task's own away.")
    if_taken: Literal["return", "replace", "reschedule"] | None = None
    idempotency_key: Key | None = Field(None, description="A repeated one returns the first job.")
    idempotency_ttl: Duration | None = None
    fair: Key | None = Field(None, description="Whose it is, where those of all take turns.")
    weight: Annotated[StrictInt, Field(ge=1, le=1_000)] | None = None
    after: Annotated[list[UUID | ParentRequest], Field(max_length=1_000)] | None = None
    notify: Notify | None = None


class BulkRequest(Request):
    """Jobs to create, all or none."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"jobs": [{"task": "send_welcome", "args": [42]}, {"task": "digest"}]}]}
    )

    jobs: Annotated[list[JobRequest], Field(min_length=1, max_length=LARGEST_BULK)]


class ReasonRequest(Request):
    """Why something is done."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"reason": "the customer asked for it"}]})

    reason: Reason | None = None


class SignalRequest(Request):
    """A signal, for a job that waits for one of its name."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "rating", "value": "fine"}]})

    name: Name
    value: Any = None


class ErrorDocument(Document):
    """Why an attempt failed."""

    type: str
    message: str
    traceback: str | None = None


class ParentDocument(Document):
    """A job that another comes after."""

    id: UUID
    if_failed: str


class JobDocument(Document):
    """A job."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "id": _EXAMPLE_ID,
                "kind": "job",
                "team": "default",
                "task": "send_welcome",
                "queue": "mail",
                "priority": 5,
                "state": "ready",
                "standing": "ready",
                "key": None,
                "args": [42],
                "kwargs": {"language": "de"},
                "created_at": "2026-11-15T09:00:00+00:00",
                "run_at": "2026-11-15T09:00:00+00:00",
                "attempt": 0,
            }
        }
    )

    id: UUID
    kind: Literal["job", "workflow"]
    team: str
    task: str
    queue: str
    priority: int
    state: JobState
    standing: str = Field(description="Its state; of a workflow that waits for its jobs `under way`.")
    key: str | None
    args: list[Any] | None = Field(description="Null for an encrypted job that the server can't open.")
    kwargs: dict[str, Any] | None
    encrypted: bool
    created_at: datetime
    run_at: datetime
    expires_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    attempt: int
    losses: int
    fence: int
    session: UUID | None
    wish: str | None
    reason: str | None
    signal: str | None
    outcome: str | None
    result: Any
    error: ErrorDocument | None
    progress: Any
    workflow: UUID | None
    parents: list[ParentDocument]
    pending: int | None


class JobPage(Document):
    """Jobs, newest first."""

    items: list[JobDocument]
    next: UUID | None = Field(description="Pass it as `before` for the next page; null when there is none.")


class BulkItem(Document):
    """The job that stands for one of those that were asked for."""

    id: UUID
    created: bool = Field(description="False for a job that had the key, or idempotency key, already.")


class BulkDocument(Document):
    """The jobs that stand for those that were asked for, in their order."""

    items: list[BulkItem]


class StateDocument(Document):
    """The state that a job is in now. One that runs stays so until its worker has heard of a wish."""

    id: UUID
    state: JobState


class AttemptDocument(Document):
    """An attempt of a job."""

    number: int
    fence: int
    session: UUID
    worker: str | None
    started_at: datetime
    finished_at: datetime | None
    duration_seconds: float | None
    outcome: str | None
    error: ErrorDocument | None
    details: Any = Field(description="What its task keeps of it, such as an exit code or the status of an answer.")


class Attempts(Document):
    """The attempts of a job, oldest first."""

    items: list[AttemptDocument]


class LineDocument(Document):
    """A line that a job has logged."""

    at: datetime
    level: str
    message: str
    logger: str | None
    fence: int
    number: int


class Lines(Document):
    """What a job has logged, oldest first."""

    items: list[LineDocument]
    next: str | None = Field(description="Pass it as `after` for the next page; null when there is none.")


class ReasonDocument(Document):
    """A reason why a job does not run."""

    code: str
    sentence: str
    estimate_seconds: float | None
    lift: str


class Reasons(Document):
    """The reasons why a job does not run, the first to lift first; none when it may run, or has."""

    items: list[ReasonDocument]


class StepDocument(Document):
    """A step that a job has done, or a sleep or signal that it waits for."""

    name: str
    at: datetime
    until: datetime | None
    pending: bool
    result: Any


class Steps(Document):
    """The steps of a job, in the order of time."""

    items: list[StepDocument]


class CronRequest(Request):
    """Whenever a cron expression matches the clocks of a time zone."""

    kind: Literal["cron"]
    expression: Annotated[str, Field(min_length=1, max_length=1_000)]
    tz: Annotated[str, Field(min_length=1, max_length=100)] = "UTC"


class EveryRequest(Request):
    """At a fixed rate."""

    kind: Literal["every"]
    length: Duration
    start: Instant | None = None


class AfterRequest(Request):
    """A fixed delay after the previous job has ended."""

    kind: Literal["after"]
    length: Duration


class AtRequest(Request):
    """Once."""

    kind: Literal["at"]
    when: Instant


TriggerRequest = Annotated[CronRequest | EveryRequest | AfterRequest | AtRequest, Field(discriminator="kind")]


class ScheduleRequest(Request):
    """A schedule to define, or to define anew."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "task": "digest",
                    "trigger": {"kind": "cron", "expression": "0 9 * * mon-fri", "tz": "Europe/Berlin"},
                    "overlap": "skip",
                },
                {"task": "import_rows", "trigger": {"kind": "every", "length": "15m"}, "kwargs": {"rows": 10}},
            ]
        }
    )

    task: Name
    trigger: TriggerRequest
    args: Annotated[list[Any], Field(max_length=1_000)] = []
    kwargs: Annotated[dict[str, Any], Field(max_length=1_000)] = {}
    queue: Name | None = None
    priority: Priority | None = None
    overlap: Literal["allow", "skip", "buffer_one", "cancel_other"] | None = None
    misfire: Literal["coalesce", "skip", "catch_up"] | None = None
    grace: Duration | None = None
    jitter: Duration | None = None
    start: Instant | None = None
    end: Instant | None = None
    max_runs: Annotated[StrictInt, Field(ge=1, le=2**31 - 1)] | None = None
    expect_success_within: Duration | None = None
    notes: Annotated[str, Field(max_length=2_000)] | None = None
    notify: Notify | None = None


class PreviewRequest(Request):
    """A trigger that is not saved, to see when it would fire."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"trigger": {"kind": "cron", "expression": "30 2 * * *"}, "limit": 5}]}
    )

    trigger: TriggerRequest
    limit: Annotated[StrictInt, Field(ge=1, le=1_000)] = 10
    after: AwareDatetime | None = None


class BackfillRequest(Request):
    """The time for which ticks are to be made up for."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"start": "2026-11-01T00:00:00Z", "end": "2026-11-02T00:00:00Z"}]}
    )

    start: Instant
    end: Instant


class TriggerDocument(Document):
    """When a schedule fires."""

    kind: str
    text: str
    expression: str | None = None
    tz: str | None = None
    length: str | None = None
    start: datetime | None = None
    when: datetime | None = None


class ScheduleDocument(Document):
    """A schedule."""

    id: str
    state: str
    task: str
    args: list[Any] | None
    kwargs: dict[str, Any] | None
    encrypted: bool
    trigger: TriggerDocument
    queue: str
    priority: int
    overlap: str
    misfire: str
    grace: str | None
    jitter: str | None
    start: datetime | None
    end: datetime | None
    max_runs: int | None
    expect_success_within: str | None
    notes: str | None
    team: str | None
    origin: str
    paused: bool
    paused_by: str | None
    paused_reason: str | None
    paused_at: datetime | None
    next_tick: datetime | None
    runs: int
    awaits: bool = Field(description="Whether it goes on only when a job of its own has ended.")
    buffered_at: datetime | None
    expected_by: datetime | None
    created_at: datetime
    changed_at: datetime


class SchedulePage(Document):
    """Schedules, in the order of their ids."""

    items: list[ScheduleDocument]
    next: str | None = Field(description="Pass it as `after` for the next page; null when there is none.")


class PreviewDocument(Document):
    """A tick that is to come."""

    at: datetime
    local: datetime
    remark: str | None


class Previews(Document):
    """Ticks that are to come."""

    items: list[PreviewDocument]


class TickDocument(Document):
    """What became of a tick, or of a row of ticks."""

    at: datetime
    until: datetime | None
    count: int | None
    verdict: str
    reason: str | None
    job: UUID | None
    node: str
    decided_at: datetime


class TickPage(Document):
    """What became of ticks, the latest first."""

    items: list[TickDocument]
    next: datetime | None = Field(description="Pass it as `before` for the next page; null when there is none.")


class IdsDocument(Document):
    """The jobs that were made."""

    jobs: list[UUID]


class NodeRequest(Request):
    """A job of a workflow. An argument `{"$result": "node"}` is the result of another."""

    id: Annotated[str, Field(min_length=1, max_length=128)]
    task: Name
    args: Annotated[list[Any], Field(max_length=1_000)] = []
    kwargs: Annotated[dict[str, Any], Field(max_length=1_000)] = {}
    map: Any = Field(None, description="A list, or the result of a node: one job for each item, as first argument.")
    after: Annotated[list[Annotated[str, Field(max_length=128)]], Field(max_length=1_000)] = []
    queue: Name | None = None
    priority: Priority | None = None
    run_after: Duration | None = None
    expires: Duration | None = None
    key: Key | None = None
    fair: Key | None = None


class WorkflowRequest(Request):
    """A workflow to create: its jobs, in any order."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "etl",
                    "nodes": [
                        {"id": "raw", "task": "extract", "kwargs": {"day": "2026-11-15"}},
                        {"id": "parts", "task": "transform", "map": {"$result": "raw"}},
                        {"id": "end", "task": "load", "args": [{"$result": "parts"}]},
                    ],
                    "output": "end",
                }
            ]
        }
    )

    name: Name
    key: Key | None = None
    nodes: Annotated[list[NodeRequest], Field(min_length=1, max_length=1_000)]
    output: Annotated[str, Field(max_length=128)] | None = Field(None, description="The node whose result it has.")
    notify: Notify | None = None


class WorkflowDocument(JobDocument):
    """A workflow: a job that is made of others."""

    counts: dict[str, int] = Field(description="How many of its jobs are in which state.")


class WorkflowPage(Document):
    """Workflows, newest first."""

    items: list[WorkflowDocument]
    next: UUID | None


class PictureNode(Document):
    """A job of a workflow, as it is drawn."""

    id: UUID
    task: str
    kind: Literal["job", "workflow", "map", "undo"]
    state: JobState
    standing: str
    took_seconds: float | None
    parents: list[UUID] = Field(description="Those that it comes after, some of which may be no jobs of this workflow.")
    counts: dict[str, int]
    why: str | None


class PictureDocument(Document):
    """A workflow as it is drawn: its jobs, oldest first; of very many, the first."""

    id: UUID
    task: str
    state: JobState
    standing: str = Field(description="Its state; `under way` while it waits for its jobs.")
    kind: Literal["workflow", "map"]
    counts: dict[str, int] = Field(description="How many of its jobs are in which state.")
    nodes: list[PictureNode]


class PauseDocument(Document):
    """A pause: who said so, and why."""

    name: str
    by: str
    reason: str | None
    since: datetime


class Pauses(Document):
    """What is paused, by name."""

    items: list[PauseDocument]


class QueueDocument(Document):
    """A queue."""

    name: str
    paused: PauseDocument | None
    jobs: dict[str, int]
    more: list[JobState] = Field(description="States of which there are more jobs than were counted.")
    ageing_seconds: float | None
    oldest_ready_seconds: float | None
    workers: list[str]
    team: str | None = Field(description="Whose it is, if it is one team's own.")


class Queues(Document):
    """Queues, by name."""

    items: list[QueueDocument]


class QueueRequest(Request):
    """How a queue is ruled."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"ageing": "1m"}, {"ageing": None}]})

    ageing: Duration | None = Field(description="How much waiting a point of priority is worth; null for strict ones.")


class SampleDocument(Document):
    """What is known of a span of time; null where nobody looked, or no job started.

    Counted is what workers settle, and what fails because its workers died; not a workflow, which ends with its
    members, nor what is cancelled or expires while it waits.
    """

    since: datetime
    succeeded: int
    failed: int = Field(description="Jobs that failed for good.")
    retried: int = Field(description="Attempts that failed and are made again.")
    ready: int | None = Field(description="The most jobs of each queue that were seen waiting for a worker.")
    oldest_ready_seconds: float | None
    wait_p50_seconds: float | None = Field(description="From when jobs were due until they started.")
    wait_p99_seconds: float | None


class HistoryDocument(Document):
    """Spans of time, oldest first; the last is not over yet."""

    over: str
    span_seconds: float
    items: list[SampleDocument]


class ResumedDocument(Document):
    """Whether there was anything to resume."""

    name: str
    resumed: bool


class WorkerDocument(Document):
    """A worker."""

    id: UUID
    name: str
    alive: bool
    lease_seconds: float
    started_at: datetime
    beat_at: datetime
    queues: list[str]
    tasks: list[str]


class Workers(Document):
    """Workers, oldest first, and whether the caller's team is shown any: only team default is."""

    items: list[WorkerDocument]
    of_fleet: bool


class TaskDocument(Document):
    """A task that the server knows."""

    name: str
    queue: str
    priority: int
    parameters: list[str]


class Tasks(Document):
    """The tasks that the server knows, by name; none if it was started without an app."""

    items: list[TaskDocument]


class GroupDocument(Document):
    """Dead letters of one cause."""

    fingerprint: str
    task: str
    type: str
    message: str
    count: int
    first_seen: datetime
    last_seen: datetime
    sample: UUID


class Groups(Document):
    """Dead letters by their cause, the one seen last first."""

    items: list[GroupDocument]


class ChosenRequest(Request):
    """Which dead letters are meant: those with these ids, or those of a group, a queue or a task.

    Of either those that died before `finished_until` alone, if that is said, which a count tells.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [{"group": "9f86d081", "reason": "mended"}]})

    group: Annotated[str, Field(min_length=1, max_length=128, pattern=NO_NUL)] | None = None
    ids: Annotated[list[UUID], Field(min_length=1, max_length=1_000)] | None = None
    queue: Name | None = None
    task: Name | None = None
    finished_until: Instant | None = None
    reason: Reason | None = None


class LettersDocument(Document):
    """How many dead letters there are, and the instant before which all of them had died."""

    count: Count
    finished_until: datetime | None


class CountDocument(Document):
    """How many dead letters were meant, and on how many it was done."""

    found: int
    done: int


class LimitDocument(Document):
    """A limit."""

    key: str
    concurrency: int | None
    interval_seconds: float | None
    burst: int | None
    held: int
    waiting: int


class Limits(Document):
    """Limits that jobs have come to lately, by key."""

    items: list[LimitDocument]


class BreakerDocument(Document):
    """A breaker."""

    key: str
    state: str
    since: datetime | None
    until: datetime | None
    waiting: int
    probes: int
    failures: int
    attempts: int
    by: str | None
    reason: str | None


class ResetDocument(BreakerDocument):
    """A breaker that was reset, and whether it was open or half-open."""

    reset: bool


class Breakers(Document):
    """Breakers under which something has failed lately, or that a person tripped, by key."""

    items: list[BreakerDocument]


class TripRequest(Request):
    """For how long to open a breaker, and why."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"lasting": "15m", "reason": "maintenance"}]})

    lasting: Duration | None = None
    reason: Reason | None = None


class ResetRequest(Request):
    """Whether all jobs that wait for the breaker go on at once."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"all": False}]})

    all: StrictBool = False


RoleName = Literal["viewer", "submitter", "operator", "admin"]
TeamName = Annotated[str, Field(min_length=1, max_length=40, pattern=r"^[a-z0-9][a-z0-9-]*$")]
TeamOrAll = Annotated[str, Field(min_length=1, max_length=40, pattern=r"^(\*|[a-z0-9][a-z0-9-]*)$")]


class TokenRequest(Request):
    """A token to make."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "shop", "grants": {"acme": "submitter"}, "expires": "90d"}]}
    )

    name: Annotated[str, Field(min_length=1, max_length=100)]
    grants: Annotated[dict[TeamOrAll, RoleName], Field(min_length=1, max_length=100)]
    expires: Duration | None = None


class TokenDocument(Document):
    """A token, without its secret."""

    id: str
    name: str
    grants: dict[str, RoleName]
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


class Tokens(Document):
    """Tokens, oldest first, also those that let nobody in any more."""

    items: list[TokenDocument]


class NewTokenDocument(Document):
    """A token that was made. Its text is shown this once."""

    text: str
    token: TokenDocument


class TeamDocument(Document):
    """A team, and what it may have; null stands for no limit."""

    name: str
    max_pending: int | None
    max_schedules: int | None
    rate: str | None = Field(description="Such as `100/s`.")
    burst: int | None


class Teams(Document):
    """Teams, by name."""

    items: list[TeamDocument]


class TeamRequest(Request):
    """What a team may have; what is left out stays as it is, and null lifts it."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"max_pending": 10_000, "max_schedules": 100, "rate": "100/s"}]}
    )

    max_pending: Annotated[StrictInt, Field(ge=0, le=2**31 - 1)] | None = None
    max_schedules: Annotated[StrictInt, Field(ge=0, le=2**31 - 1)] | None = None
    rate: Annotated[str, Field(min_length=1, max_length=50)] | None = Field(None, description="Such as `100/s`.")
    burst: Annotated[StrictInt, Field(ge=1, le=2**31 - 1)] | None = None


class OwnerRequest(Request):
    """Whose a queue is to be."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"team": "acme"}]})

    team: TeamName | None


class RecordDocument(Document):
    """An entry of the audit log: what was asked for, by whom."""

    number: int
    id: UUID
    at: datetime
    actor: str
    team: str | None
    action: str
    target: str | None
    details: Any
    hash: str = Field(description="Over all this, and the hash before it.")


class Records(Document):
    """Entries of the audit log, the last first."""

    items: list[RecordDocument]
    next: int | None = Field(description="Pass it as `before` for the next page; null when there is none.")


class HealthDocument(Document):
    """All is well."""

    status: Literal["ok"]
