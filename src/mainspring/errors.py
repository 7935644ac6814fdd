"""Every exception that Mainspring raises on purpose.

    MainspringError
    ├── InvalidValue (ValueError)        a caller's value
    │   ├── InvalidPayload               an argument or result that JSON can't carry
    │   │   └── StepResultRefused        the result of a step that has run
    │   ├── InvalidURL                   a database address
    │   ├── CommandRefused               a command that a worker does not run
    │   ├── OutboundRefused              a request to where none may go
    │   ├── InvalidKey                   an encryption key
    │   ├── DuplicateTask                a second task of the same name
    │   └── DuplicateSchedule            a second schedule of the same id
    ├── NotFound (LookupError)           a missing thing
    │   ├── TaskNotFound
    │   ├── JobNotFound
    │   ├── ScheduleNotFound
    │   ├── AlertNotFound
    │   ├── NotificationNotFound         a rule of a team
    │   ├── DeadGroupNotFound            a group of dead letters
    │   ├── TokenNotFound
    │   ├── SecretNotFound
    │   └── TeamNotFound                 a team of which nothing was said
    ├── KeyMissing                       an encryption key that is not here
    ├── SealBroken                       something sealed that is not what it was, or not where it belongs
    ├── IllegalMove                      a transition that the lifecycle does not allow
    ├── Snooze                           raised by a handler that wants to be run again later (model/outcome.py)
    ├── RetryAfter                       raised by one that failed, and knows when to try again (model/outcome.py)
    ├── KeyTaken                         a job of a workflow that can't be made
    ├── JobFailed                        a result that will never come
    ├── ResultNotReady (TimeoutError)    a result that has not come in time
    ├── ReplayRefused                    a job that can't live again
    ├── SignalRefused                    a job that takes no signal
    ├── QuotaExceeded                    more than a team may have
    ├── OutboundFailed                   a request that did not get through
    ├── NotAllowed                       what is not for one team to do
    ├── Undelivered                      a notification that did not arrive, this time
    │   └── Undeliverable                one that never will
    ├── ServerUnavailable                a server that can't be reached
    ├── ServerRefused                    a server that does not do it
    └── StoreError                       the database
        ├── StoreUnavailable             can't be reached, or did not answer in time
        ├── StoreReadOnly                can't be written
        ├── StoreFull                    has no room left
        ├── StoreGone                    was deleted or replaced while it was open
        └── SchemaError
            ├── SchemaMissing            never migrated
            ├── SchemaOutdated           older than this code
            └── SchemaNewer              newer than this code

A class builds its own sentence from the facts: what was expected, what came, and the way out.

    Stop (BaseException)                 what ends an attempt from outside; no error of anybody's
    ├── CancelRequested
    ├── PauseRequested
    ├── TimeExpired
    ├── WorkerStopped
    ├── Suspension                       raised within: the attempt sleeps, or waits for a signal
    └── LeaseLost                        the attempt no longer holds its job

These are raised inside handlers. Like KeyboardInterrupt they pass through `except Exception`, which a handler that
goes on after a failed item is bound to have. LeaseLost most of all: swallowed there, it would let the handler go on
beside the one that has the job by now.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from difflib import get_close_matches


class MainspringError(Exception):
    """Base of all errors that Mainspring raises on purpose."""

    def __reduce__(self) -> tuple[object, ...]:
        # A class that builds its own sentence could not be built again from that sentence.
        return _restored, (type(self), self.args)


class InvalidValue(MainspringError, ValueError):
    """A caller's value is not what was expected."""


class InvalidPayload(InvalidValue):
    """An argument or result can't be carried as JSON; the message names it and says why."""


class StepResultRefused(InvalidPayload):
    """What a step returned can't be kept, so that nobody could know later that it has run; its job fails for good."""

    def __init__(self, step: str, why: object) -> None:
        super().__init__(f"step {step!r} has run, but {why}; what a step returns is kept as JSON")


class InvalidURL(InvalidValue):
    """A database address that Mainspring does not understand."""


class OutboundRefused(InvalidValue):
    """A request that must not be sent: to a private address, or with a URL or header that is none."""


class CommandRefused(InvalidValue):
    """A command that the worker does not allow, or could not run as it was asked for."""


class InvalidKey(InvalidValue):
    """What is no encryption key, or one that others may know; the message never shows it."""


class DuplicateTask(InvalidValue):
    """A second task of the same name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"a task named {name!r} exists already; give one of the two another name=")


class DuplicateSchedule(InvalidValue):
    """A second schedule of the same id, in the same program."""

    def __init__(self, schedule_id: str) -> None:
        super().__init__(f"a schedule with the id {schedule_id!r} is defined already; give one of the two another id=")


class NotFound(MainspringError, LookupError):
    """A thing that was named does not exist."""


class TaskNotFound(NotFound):
    """A task name that no registered task has."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"no task is named {name!r}{did_you_mean(name, known)}")


class JobNotFound(NotFound):
    """A job id that is not, or no longer, in the database."""

    def __init__(self, job_id: object) -> None:
        super().__init__(f"no job has the id {job_id}; it may have been pruned")


class ScheduleNotFound(NotFound):
    """A schedule id that no stored schedule has."""

    def __init__(self, schedule_id: str, known: Iterable[str]) -> None:
        super().__init__(f"no schedule has the id {schedule_id!r}{did_you_mean(schedule_id, known)}")


class AlertNotFound(NotFound):
    """An alert id that no stored alert has."""

    def __init__(self, alert_id: str, known: Iterable[str]) -> None:
        super().__init__(f"no alert has the id {alert_id!r}{did_you_mean(alert_id, known)}")


class NotificationNotFound(NotFound):
    """The id of a rule that the team does not have."""

    def __init__(self, rule_id: str, known: Iterable[str]) -> None:
        super().__init__(f"no notification has the id {rule_id!r}{did_you_mean(rule_id, known)}")


class DeadGroupNotFound(NotFound):
    """A fingerprint that no dead letter has."""

    def __init__(self, group: str) -> None:
        super().__init__(
            f"no dead letters have a fingerprint that begins with {group!r}; they may have been replayed, discarded or "
            "pruned"
        )


class TokenNotFound(NotFound):
    """The id of a token that is not known."""

    def __init__(self, token_id: str) -> None:
        # No more of it than an id has: whoever pasted the token itself must not find its secret in a log.
        super().__init__(f"no token has the id {token_id[:12]!r}; `mainspring tokens list` shows those that there are")


class TeamNotFound(NotFound):
    """The name of a team of which nothing was said."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"nothing was said of a team named {name!r}{did_you_mean(name, known)}")


class SecretNotFound(NotFound):
    """A secret that the team does not have."""

    def __init__(self, name: str, team: str) -> None:
        whose = "" if team == "default" else f" --team {team}"
        super().__init__(
            f"team {team!r} has no secret named {name!r}; set it with `mainspring secrets set {name}{whose}`"
        )


class KeyMissing(MainspringError):
    """The encryption key that is needed is not known to this process."""


class SealBroken(MainspringError):
    """What was sealed is not what it was, or was sealed for another place than the one where it was found."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} can't be opened: it was changed, or was sealed for something else; restore it, or set it anew"
        )


class IllegalMove(MainspringError):
    """A transition that `model.lifecycle` does not allow: a bug in the caller, never in its data."""

    def __init__(self, source: str, target: str) -> None:
        super().__init__(f"a job can't move from {source} to {target}")


class KeyTaken(MainspringError):
    """A job on which others depend that are made with it, and whose key another has, so that it can't be made."""

    def __init__(self, task: str, key: str | None) -> None:
        super().__init__(
            f"a job of task {task!r} on which others depend can't be made, because another job has its key {key!r}; "
            "let that end first, or give it another key, or none"
        )


class JobFailed(MainspringError):
    """The job whose result was asked for ended without one."""

    def __init__(self, job_id: object, state: str, why: str | None) -> None:
        super().__init__(f"job {job_id} {state}" + (f": {why}" if why else ""))


class ResultNotReady(MainspringError, TimeoutError):
    """The job whose result was asked for has not finished in time."""

    def __init__(self, job_id: object, state: str) -> None:
        super().__init__(f"job {job_id} has not finished yet: it is {state}")


class ReplayRefused(MainspringError):
    """The job that was to run again can't."""

    def __init__(self, job_id: object, why: str) -> None:
        super().__init__(f"job {job_id} can't be replayed: {why}")


class SignalRefused(MainspringError):
    """The job to which a signal was sent takes none."""

    def __init__(self, job_id: object, why: str) -> None:
        super().__init__(f"job {job_id} {why}")


class OutboundFailed(MainspringError):
    """A request did not get through, or its reply did not come in time; another try may help."""


class QuotaExceeded(MainspringError):
    """A team asked for more than it may have. `retry_after` is in how many seconds it may, where time will help."""

    retry_after: float | None = None

    def __init__(self, team: str, what: str, retry_after: float | None = None) -> None:
        self.retry_after = retry_after
        when = "" if retry_after is None else f"; try again in {retry_after:.3g} s"
        super().__init__(f"team {team!r} may not have {what}{when}")


class NotAllowed(MainspringError):
    """A team asked for what would touch others."""

    def __init__(self, team: str | None, deed: str) -> None:
        super().__init__(f"team {team!r} can't {deed}; ask whoever looks after the whole fleet")


class Undelivered(MainspringError):
    """A notification did not arrive; another try may help."""


class Undeliverable(Undelivered):
    """A notification will not arrive, however often it is tried."""


class ServerUnavailable(MainspringError):
    """A server of ours can't be reached, or did not answer in time."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the server can't be reached: {why}")


class ServerRefused(MainspringError):
    """A server of ours refused what was asked of it; `status` is what HTTP calls that."""

    def __init__(self, why: str, status: int) -> None:
        self.status = status
        super().__init__(why)


class Stop(BaseException):
    """What ends an attempt from outside."""


class CancelRequested(Stop):
    """A person cancelled the job while it ran."""


class PauseRequested(Stop):
    """A person paused the job while it ran; it starts again when it is resumed."""


class TimeExpired(Stop):
    """The attempt took longer than its task's timeout."""


class WorkerStopped(Stop):
    """The worker was told to stop at once; the job goes back to its queue."""


class Suspension(Stop):
    """The handler sleeps, or waits for a signal; it is started again when that is over, and comes back to where it was.

    A handler that catches it must let it go on.
    """

    def __init__(self, delay: timedelta, signal: str | None = None) -> None:
        self.delay = delay
        self.signal = signal
        super().__init__(f"sleep for {delay}" if signal is None else f"wait for signal {signal!r}, {delay} at most")


class LeaseLost(Stop):
    """The worker's lease ended, so another worker may hold the job; nothing more can be recorded for this attempt."""


class StoreError(MainspringError):
    """The database refused or failed."""


class StoreUnavailable(StoreError):
    """The database can't be reached, or did not answer in time."""


class StoreReadOnly(StoreError):
    """The database can be read but not written."""


class StoreFull(StoreError):
    """The database has no room left; nothing of the refused write was kept."""


class StoreGone(StoreError):
    """The database was deleted or replaced while it was open; only a restart helps."""


class SchemaError(StoreError):
    """The database's tables do not fit this version of Mainspring."""


class SchemaMissing(SchemaError):
    """The database holds other tables but none of ours, so we ask before adding any."""

    def __init__(self) -> None:
        super().__init__("the database was never prepared for Mainspring; run `mainspring migrate`")


class SchemaOutdated(SchemaError):
    """The database is older than this code."""

    def __init__(self, found: int, needed: int) -> None:
        super().__init__(
            f"the database is at schema version {found}, this mainspring needs {needed}; run `mainspring migrate`"
        )


class SchemaNewer(SchemaError):
    """The database is newer than this code, which can't know what the newer tables mean."""

    def __init__(self, found: int, known: int) -> None:
        super().__init__(
            f"the database is at schema version {found}, this mainspring knows only up to {known}; "
            "upgrade the mainspring package on this machine"
        )


def _restored(kind: type[MainspringError], args: tuple[object, ...]) -> MainspringError:
    error = kind.__new__(kind)
    error.args = args
    return error


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `, did you mean 'x'?` for the nearest known word, or nothing when none is near."""
    near = get_close_matches(word, list(known), n=1)
    return f", did you mean {str(near[0])!r}?" if near else ""  # a member of an enum is shown as the word it is


def check_known(given: Iterable[str], known: type, nothing: str = "no setting") -> None:
    """Refuse names that are not in the TypedDict *known*, saying that *nothing* has them."""
    for name in given:
        if name not in known.__annotations__:
            hint = did_you_mean(name, known.__annotations__) or f"; known are {', '.join(known.__annotations__)}"
            raise InvalidValue(f"{nothing} is named {name!r}{hint}")
