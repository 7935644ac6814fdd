"""App: the front door. What users write against."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Concatenate, ParamSpec, Protocol, TypedDict, TypeVar, Unpack, cast, overload
from uuid import UUID

from mainspring.alerts import Alerts
from mainspring.audit import Audit
from mainspring.breakers import Breakers
from mainspring.builtin import all_builtin
from mainspring.changes import Changes
from mainspring.client import Client, Match
from mainspring.clock import Clock
from mainspring.dead import Dead
from mainspring.errors import InvalidValue, QuotaExceeded, check_known
from mainspring.job_handle import JobHandle, id_of
from mainspring.limits import Limits
from mainspring.model.audit import Entry
from mainspring.model.channel import Channel
from mainspring.model.duration import Duration, duration
from mainspring.model.history import History
from mainspring.model.job import NewJob
from mainspring.model.journal import FoundLine, LogFilter
from mainspring.model.session import Session
from mainspring.model.task import Registry
from mainspring.model.team import DEFAULT_TEAM
from mainspring.model.text import shortened
from mainspring.model.trigger import Trigger
from mainspring.node import Node, NodeSettings, run_until_signalled
from mainspring.notifications import Notifications
from mainspring.queues import PausedTasks, Queues
from mainspring.retention import Retention
from mainspring.schedules import ScheduleOptions, Schedules, check_trigger
from mainspring.secrets import Secrets
from mainspring.store.protocol import LogSearch
from mainspring.task_handle import Policies, TaskHandle, Wishes, make_task
from mainspring.teams import Teams
from mainspring.tokens import Tokens
from mainspring.twin import twin
from mainspring.worker.context import Context
from mainspring.workflow import NamedWorkflow, Workflow, declared
from mainspring.workflow_handle import WorkflowHandle, handle_of

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound=TaskHandle[..., Any])

DEFAULT_URL = "sqlite:///mainspring.db"
_YES, _NO = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")


class Mainspring:
    """An application: its tasks, and the database that keeps their jobs.

    The database is MAINSPRING_URL's unless one is named, and a SQLite file here unless that says otherwise. It is
    opened when it is first needed, so making an app touches nothing.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        team: str | None = None,
        encrypt: bool | None = None,
        clock: Clock | None = None,
    ) -> None:
        """An app of a *team* sees and makes what is the team's; any other sees everything.

        With *encrypt*, or MAINSPRING_ENCRYPT=1, the arguments and results of all tasks are sealed that do not say
        otherwise. A *clock* takes the place of the database's own; it is meant for tests.
        """
        client = Client(url or os.environ.get("MAINSPRING_URL") or DEFAULT_URL, clock=clock)
        team = team or os.environ.get("MAINSPRING_TEAM")
        tasks = Registry(all_builtin(), encrypt=_encrypts() if encrypt is None else encrypt)
        self._furnish(client.within(team) if team else client, tasks)

    def _furnish(self, client: Client, tasks: Registry) -> None:
        self.client = client
        self.tasks = tasks
        self.schedules = Schedules(self.client, self.tasks)
        self.dead = Dead(self.client, self.tasks)
        self.queues = Queues(self.client)
        self.limits = Limits(self.client)
        self.breakers = Breakers(self.client)
        self.alerts = Alerts(self.client)
        self.retention = Retention(self.client)
        self.secrets = Secrets(self.client)
        self.notifications = Notifications(self.client)
        self.paused_tasks = PausedTasks(self.client, self.tasks)
        self.teams = Teams(self.client)
        self.tokens = Tokens(self.client)
        self.audit = Audit(self.client)

    def within(self, team: str) -> Mainspring:
        """Return this app bound to *team*: the same tasks and database, and of all that is in it the team's only."""
        bound = object.__new__(type(self))
        bound._furnish(self.client.within(team), self.tasks)
        return bound

    def unbound(self) -> Mainspring:
        """Return this app bound to no team: the same tasks and database, and all that is in it."""
        whole = object.__new__(type(self))
        whole._furnish(self.client.home, self.tasks)
        return whole

    @overload
    def task(self, handler: Callable[Concatenate[Context, P], Awaitable[R]], /) -> TaskHandle[P, R]: ...
    @overload
    def task(self, handler: Callable[Concatenate[Context, P], R], /) -> TaskHandle[P, R]: ...
    @overload
    def task(self, handler: Callable[P, Awaitable[R]], /) -> TaskHandle[P, R]: ...
    @overload
    def task(self, handler: Callable[P, R], /) -> TaskHandle[P, R]: ...
    @overload
    def task(self, /, **policies: Unpack[Policies]) -> TaskDecorator: ...

    def task(self, handler: Callable[..., Any] | None = None, /, **policies: Unpack[Policies]) -> Any:
        """Make a function a task. It stays an ordinary function when it is called.

        A function may become several tasks, of this app or of others: given a task, this makes another one of its
        function, with policies of its own.
        """
        if handler is None:
            return lambda handler: self._register(handler, policies)
        return self._register(handler, policies)

    @overload
    def workflow(self, name: str, /, **options: Unpack[WorkflowOptions]) -> NamedWorkflow: ...
    @overload
    def workflow(self, function: Callable[Concatenate[Workflow, P], object], /) -> TaskHandle[P, Any]: ...
    @overload
    def workflow(self, /, **policies: Unpack[Policies]) -> WorkflowDecorator: ...

    def workflow(self, made_of: Any = None, /, **given: Any) -> Any:
        """Make a workflow: called with a name, one to add jobs to and enqueue; as a decorator, one to enqueue by name.

        A function that is decorated gets the workflow as its first argument, and adds jobs to it when a worker runs
        it. It can be enqueued, scheduled, and added to other workflows as any task can.
        """
        if isinstance(made_of, str):
            check_known(given, WorkflowOptions)
            return NamedWorkflow(self.client, self.tasks, made_of, given.get("key"), given.get("notify", ()))
        if made_of is None:
            return lambda function: self._declare(function, cast("Policies", given))
        return self._declare(made_of, cast("Policies", given))

    def schedule(
        self,
        trigger: Trigger,
        *,
        id: str | None = None,  # noqa: A002
        **options: Unpack[ScheduleOptions],
    ) -> Callable[[S], S]:
        """Have a task enqueued when *trigger* says so. It stands above `@app.task`, any number of times.

        Every worker of the app stores it as it starts. Its id is the name of the task unless given.
        """
        check_trigger(trigger)  # or a decorator without its parentheses would do nothing at all
        return lambda task: self.schedules.define(id, task, trigger, options)

    def enqueue(
        self,
        task: str,
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
        **wishes: Unpack[Wishes],
    ) -> JobHandle[Any]:
        """Enqueue a job of the task with this name.

        Its arguments are checked if the app knows the task. An app that has tasks knows them all; one that has none
        is a mere sender, and may name any.
        """
        return self._to_send(task, wishes).enqueue(*args, **kwargs or {})

    async def aenqueue(
        self,
        task: str,
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
        **wishes: Unpack[Wishes],
    ) -> JobHandle[Any]:
        """Do as `enqueue` does, for callers that must not block their loop."""
        return await self._to_send(task, wishes).aenqueue(*args, **kwargs or {})

    def prepare(
        self,
        task: str,
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
        **wishes: Unpack[Wishes],
    ) -> NewJob:
        """Return a job that is checked as `enqueue` checks it, but not stored."""
        return self._to_send(task, wishes).prepare(args, kwargs or {})

    def enqueue_prepared(self, jobs: Sequence[NewJob], entries: Sequence[Entry] = ()) -> list[JobHandle[Any]]:
        """Enqueue what `prepare` has made, all or none, and return for each the job that stands for it.

        *entries* are put into the audit log together with them, or not at all.
        """
        return [JobHandle(self.client, job_id) for job_id in self.client.enqueue(jobs, entries=entries)]

    def admit_prepared(self, jobs: Sequence[NewJob], count: int | None = None) -> None:
        """Raise QuotaExceeded if the team may not have what `prepare` has made, or *count* jobs that come of it.

        For what repeats an earlier request there is no need of room: its job is there already, and whoever asks again,
        because no answer reached him, is to hear of it.
        """
        wanted, team = len(jobs) if count is None else count, self.client.scope or DEFAULT_TEAM
        try:
            self.teams.admit(team, jobs=wanted)
        except QuotaExceeded:
            new = len(jobs) - len(self.client.repeats(jobs))
            if new == len(jobs):
                raise
            self.teams.admit(team, jobs=new)

    def job(self, job_id: UUID | str) -> JobHandle[Any]:
        """Return a handle for the job with this id, which must exist."""
        return handle_of(self.client, self.tasks, self.client.get(id_of(job_id)))

    def jobs(
        self, *, before: UUID | str | None = None, limit: int = 50, **match: Unpack[Match]
    ) -> list[JobHandle[Any]]:
        """Return jobs, newest first; pass the last one's id as *before* for the next page.

        They may be chosen by state, queue, task and key, by when they were made (*since*, *until*) and when they ended
        (*finished_since*, *finished_until*), and by an *error* that their last failure contains.
        """
        found = self.client.page(self.client.match(match), None if before is None else id_of(before), limit)
        return [handle_of(self.client, self.tasks, job) for job in found]

    def logs(
        self,
        *,
        contains: str | None = None,
        level: str | None = None,
        task: str | None = None,
        since: Duration | datetime = "1h",
        limit: int = 100,
    ) -> list[FoundLine]:
        """Return what jobs have logged lately, newest first: what *contains* a text, or is of a *level* on.

        *since* is an instant, or how long ago that is. All lines since then are looked through, until there are enough.
        """
        match = LogFilter(contains=contains, level=level)
        within = self._ago(since) if isinstance(since, datetime) else duration(since, "since")
        return self.client.find_logs(LogSearch(match=match, task=task, within=within), limit)

    alogs = twin(logs)

    def history(self, over: str = "1h", *, queue: str | None = None) -> History:
        """Return what became of jobs and what waited over the last `1h`, `24h` or `7d`, in equal spans of it.

        Workers count it, and tell of it every ten seconds: one that is killed takes its last seconds along.
        """
        return self.client.store.history(over, self.client.scope, queue)

    ahistory = twin(history)

    def workflows(self, before: UUID | str | None = None, limit: int = 50) -> list[WorkflowHandle[Any]]:
        """Return workflows that are part of none, newest first; pass the last one's id as *before* for more."""
        found = self.client.workflows(None if before is None else id_of(before), limit)
        return [WorkflowHandle(self.client, job.id, Any, job) for job in found]

    def changes(self) -> Changes:
        """Return a place in the stream of what happens to jobs from now on, to look at again and again."""
        return Changes(self.client)

    def workers(self) -> list[Session]:
        """Return the workers that were not closed or reaped, oldest first; for teams but the default one none."""
        return self.client.sessions()

    def of_fleet(self) -> bool:
        """Return whether what holds for the whole fleet, such as its workers, is shown to it."""
        return self.client.of_fleet

    def signal(self, job: JobHandle[Any] | UUID | str, name: str, value: object = None) -> None:
        """Send a signal to a job, which takes it with `ctx.wait_signal(name)`, now or when it comes to that."""
        self._signalled(job).signal(name, value)

    async def asignal(self, job: JobHandle[Any] | UUID | str, name: str, value: object = None) -> None:
        """Do as `signal` does, for callers that must not block their loop."""
        await self._signalled(job).asignal(name, value)

    @contextmanager
    def worker(self, **settings: Unpack[NodeSettings]) -> Iterator[Node]:
        """Work in the background of this process while the block lasts; it ends when what has started is settled."""
        node = Node(self.client, self.tasks, settings, self.schedules.sync)
        node.start()
        try:
            yield node
        finally:
            node.stop()

    def run_worker(self, **settings: Unpack[NodeSettings]) -> None:
        """Work until SIGTERM or SIGINT, and settle what has started; a second signal stops at once."""
        run_until_signalled(Node(self.client, self.tasks, settings, self.schedules.sync))

    @property
    def http(self) -> TaskHandle[..., Any]:
        """The built-in task that sends a request, to be enqueued, scheduled or added to a workflow as any other."""
        return self._to_send("mainspring.http", {})

    @property
    def command(self) -> TaskHandle[..., Any]:
        """The built-in task that runs a command, likewise, on a worker that allows it."""
        return self._to_send("mainspring.command", {})

    def close(self) -> None:
        """Close the database. The app can be used again, which opens it again."""
        self.client.close()

    def _register(self, handler: Callable[..., Any], policies: Policies) -> TaskHandle[..., Any]:
        task = make_task(handler, self._completed(policies))
        self.tasks.add(task)
        return TaskHandle(self.client, task)

    def _declare(self, function: Callable[..., Any], policies: Policies) -> TaskHandle[..., Any]:
        handler, parameter = declared(self.client, self.tasks, function)
        task = make_task(handler, self._completed(policies), workflow=parameter)
        self.tasks.add(task)
        return TaskHandle(self.client, task)

    def _completed(self, policies: Policies) -> Policies:
        return {"encrypt": True, **policies} if self.tasks.encrypt else policies

    def _signalled(self, job: JobHandle[Any] | UUID | str) -> JobHandle[Any]:
        return JobHandle(self.client, job.id if isinstance(job, JobHandle) else id_of(job))

    def _ago(self, since: datetime) -> timedelta:
        """Return how long ago *since* is; of what is yet to come, no time at all."""
        return max(timedelta(0), self.client.store.now() - _aware(since))

    def _to_send(self, task: str, wishes: Wishes) -> TaskHandle[..., Any]:
        return TaskHandle[..., Any](self.client, self.tasks.to_send(task)).using(**wishes)


class WorkflowOptions(TypedDict, total=False):
    """What a workflow that is made job by job may say beside its name."""

    key: str | None
    notify: Sequence[Channel]


class WorkflowDecorator(Protocol):
    """What `app.workflow(...)` returns without a name: it keeps the types of the function that it decorates."""

    def __call__(self, function: Callable[Concatenate[Workflow, P], object], /) -> TaskHandle[P, Any]: ...


class TaskDecorator(Protocol):
    """What `app.task(...)` returns: it keeps the types of the function that it decorates."""

    @overload
    def __call__(self, handler: Callable[Concatenate[Context, P], Awaitable[R]], /) -> TaskHandle[P, R]: ...
    @overload
    def __call__(self, handler: Callable[Concatenate[Context, P], R], /) -> TaskHandle[P, R]: ...
    @overload
    def __call__(self, handler: Callable[P, Awaitable[R]], /) -> TaskHandle[P, R]: ...
    @overload
    def __call__(self, handler: Callable[P, R], /) -> TaskHandle[P, R]: ...


def _aware(since: datetime) -> datetime:
    if since.tzinfo is None:
        raise InvalidValue(f"expected since to have a time zone, got: {since}; add one, such as tzinfo=UTC")
    return since


def _encrypts() -> bool:
    """Return whether MAINSPRING_ENCRYPT says so; what says neither is refused, for it may be meant as yes."""
    said = os.environ.get("MAINSPRING_ENCRYPT", "0").lower()
    if said not in _YES + _NO:
        raise InvalidValue(f"expected MAINSPRING_ENCRYPT to be 1 or 0, got: {shortened(said)}")
    return said in _YES
