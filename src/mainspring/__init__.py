"""Mainspring runs background jobs, cron schedules and workflows on SQLite or PostgreSQL.

The flow has one word per step in every layer: enqueue → claim → execute → settle → notify, and the sweeps are
promote, fire, reap, release, alert, sample and prune. Where they live:

    model/       nouns and rules, pure: what may happen to a job
    store/       everything that touches a database: making it happen
    app.py       the front door: what users write against
    worker/      claim, execute, settle, and the heartbeat beside them
    schedules.py the schedules of an app
    workflow.py  its workflows
    dead.py      its dead letters
    notifications.py, notify/    who is told of all this, and how
    secrets.py   its secrets, sealed with what is in keys.py
    teams.py     whose all this is, with tokens.py and audit.py: who may do what, and who did
    scheduler/   the sweeps
    cli/         the `mainspring` command
"""

from mainspring.app import Mainspring
from mainspring.errors import (
    CancelRequested,
    DeadGroupNotFound,
    InvalidPayload,
    InvalidValue,
    JobFailed,
    JobNotFound,
    KeyMissing,
    KeyTaken,
    LeaseLost,
    MainspringError,
    NotAllowed,
    PauseRequested,
    QuotaExceeded,
    ReplayRefused,
    ResultNotReady,
    ScheduleNotFound,
    SealBroken,
    SecretNotFound,
    Stop,
    StoreError,
    StoreUnavailable,
    TaskNotFound,
    TimeExpired,
    WorkerStopped,
)
from mainspring.model.breaker import Breaker
from mainspring.model.channel import Email, Webhook
from mainspring.model.job import IfTaken, JobState, Priority
from mainspring.model.limits import Limit
from mainspring.model.links import IfFailed
from mainspring.model.outcome import RetryAfter, Snooze
from mainspring.model.retry import Retry
from mainspring.model.schedule import Misfire, Overlap
from mainspring.model.token import Role
from mainspring.model.trigger import after, at, cron, every
from mainspring.task_handle import Parent
from mainspring.worker.context import Context
from mainspring.workflow import Workflow

__version__ = "0.1.0.dev0"

__all__ = [
    "Breaker",
    "CancelRequested",
    "Context",
    "DeadGroupNotFound",
    "Email",
    "IfFailed",
    "IfTaken",
    "InvalidPayload",
    "InvalidValue",
    "JobFailed",
    "JobNotFound",
    "JobState",
    "KeyMissing",
    "KeyTaken",
    "LeaseLost",
    "Limit",
    "Mainspring",
    "MainspringError",
    "Misfire",
    "NotAllowed",
    "Overlap",
    "Parent",
    "PauseRequested",
    "Priority",
    "QuotaExceeded",
    "ReplayRefused",
    "ResultNotReady",
    "Retry",
    "RetryAfter",
    "Role",
    "ScheduleNotFound",
    "SealBroken",
    "SecretNotFound",
    "Snooze",
    "Stop",
    "StoreError",
    "StoreUnavailable",
    "TaskNotFound",
    "TimeExpired",
    "Webhook",
    "WorkerStopped",
    "Workflow",
    "__version__",
    "after",
    "at",
    "cron",
    "every",
]
