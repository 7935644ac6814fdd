"""Mainspring runs background jobs, cron schedules and workflows on SQLite or PostgreSQL.

The flow has one word per step in every layer: enqueue → claim → execute → settle → notify, and the sweeps are
promote, fire, reap, release, alert and prune. Where they live:

    model/       nouns and rules, pure: what may happen to a job
    store/       everything that touches a database: making it happen
    app.py       the front door: what users write against
    worker/      claim, execute, settle, and the heartbeat beside them
    schedules.py the schedules of an app
    workflow.py  its workflows
    dead.py      its dead letters
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
    KeyTaken,
    LeaseLost,
    MainspringError,
    PauseRequested,
    ReplayRefused,
    ResultNotReady,
    ScheduleNotFound,
    Stop,
    StoreError,
    StoreUnavailable,
    TaskNotFound,
    TimeExpired,
    WorkerStopped,
)
from mainspring.model.breaker import Breaker
from mainspring.model.job import IfTaken, JobState, Priority
from mainspring.model.limits import Limit
from mainspring.model.links import IfFailed
from mainspring.model.outcome import Snooze
from mainspring.model.retry import Retry
from mainspring.model.schedule import Misfire, Overlap
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
    "IfFailed",
    "IfTaken",
    "InvalidPayload",
    "InvalidValue",
    "JobFailed",
    "JobNotFound",
    "JobState",
    "KeyTaken",
    "LeaseLost",
    "Limit",
    "Mainspring",
    "MainspringError",
    "Misfire",
    "Overlap",
    "Parent",
    "PauseRequested",
    "Priority",
    "ReplayRefused",
    "ResultNotReady",
    "Retry",
    "ScheduleNotFound",
    "Snooze",
    "Stop",
    "StoreError",
    "StoreUnavailable",
    "TaskNotFound",
    "TimeExpired",
    "WorkerStopped",
    "Workflow",
    "__version__",
    "after",
    "at",
    "cron",
    "every",
]
