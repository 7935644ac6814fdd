"""Queues of an app's database, and tasks that are paused: looked at and ruled for the whole fleet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mainspring.client import Client
from mainspring.errors import InvalidValue, NotAllowed
from mainspring.model.duration import Duration
from mainspring.model.job import check_name
from mainspring.model.queue import NewPause, Pausable, Pause, Queue, ageing_of
from mainspring.model.task import Registry
from mainspring.model.team import DEFAULT_TEAM, check_team
from mainspring.model.text import shortened
from mainspring.service import person
from mainspring.task_handle import TaskHandle
from mainspring.twin import twin


class Queues:
    """All queues. A queue needs no making: it is there when a job, a worker or a pause names it.

    Queues are everybody's unless they are given to a team. Within a team those of others are not there, and only its
    own can be ruled; those that are everybody's are ruled from within the default team, or from within none.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def pause(self, name: str, *, reason: str | None = None, by: str | None = None) -> Pause:
        """Let no worker claim from the queue until `resume`; what runs goes on.

        *by* is who says so: the user of this process and its host, unless told.
        """
        self._check_ruled(name)
        return _pause(self._client, Pausable.QUEUE, name, reason, by)

    def resume(self, name: str) -> bool:
        """Let workers claim from it again; return whether it was paused."""
        self._check_ruled(name)
        return self._client.store.resume_claims(Pausable.QUEUE, name)

    def set(self, name: str, *, ageing: Duration | None) -> None:
        """With *ageing*, each point of priority is worth that much waiting time, so that no job of the queue starves.

        None makes priority strict again: the more urgent goes first, however long others wait.
        """
        check_name(name, "queue")
        self._check_ruled(name)
        self._client.store.set_ageing(name, ageing_of(ageing))

    def give(self, name: str, team: str | None) -> None:
        """Make the queue a team's own: from within other teams nothing more is enqueued there.

        None makes it everybody's. What is there already stays, and clients of other processes know within a second.
        """
        check_name(name, "queue")
        if team is not None:
            check_team(team)
        if self._client.scope is not None:
            raise NotAllowed(self._client.scope, "say whose a queue is")
        self._client.store.give_queue(name, team)
        self._client.home.forget_owners()

    def list(self, *, quick: bool = False) -> Sequence[Queue]:
        """Return the queues that have unfinished jobs, an owner, a worker, ageing on or a pause, by name.

        Within a team, its own jobs are counted, and queues that are another's are left out. With *quick* no more are
        counted than can be in no time: `Queue.more` says in which states there are more.
        """
        return self._client.store.queues(self._client.scope, quick=quick)

    apause = twin(pause)
    aresume = twin(resume)
    aset = twin(set)  # noqa: A003 - the method above
    agive = twin(give)
    alist = twin(list)  # noqa: A003 - the method above

    def _check_ruled(self, name: str) -> None:
        scope = self._client.scope
        if scope is not None and self._client.store.queue_owners().get(name, DEFAULT_TEAM) != scope:
            raise NotAllowed(scope, f"rule queue {shortened(name)}, which is not its own")


class PausedTasks:
    """The tasks that are paused, in whatever queue their jobs are, and whosever they are."""

    def __init__(self, client: Client, tasks: Registry) -> None:
        self._client = client
        self._tasks = tasks

    def pause(self, task: TaskHandle[..., Any] | str, *, reason: str | None = None, by: str | None = None) -> Pause:
        """Let no worker claim jobs of the task until `resume`; what runs goes on.

        *by* is who says so: the user of this process and its host, unless told.
        """
        self._client.check_of_fleet("pause a task, whose jobs may be anybody's")
        return _pause(self._client, Pausable.TASK, self._tasks.to_send(_name(task)).name, reason, by)

    def resume(self, task: TaskHandle[..., Any] | str) -> bool:
        """Let workers claim its jobs again; return whether it was paused."""
        self._client.check_of_fleet("resume a task, whose jobs may be anybody's")
        return self._client.store.resume_claims(Pausable.TASK, _name(task))

    def list(self) -> Sequence[Pause]:
        """Return what is paused, by the name of the task."""
        pauses = self._client.store.pauses() if self._client.of_fleet else []
        return [pause for pause in pauses if pause.kind is Pausable.TASK]

    apause = twin(pause)
    aresume = twin(resume)
    alist = twin(list)  # noqa: A003 - the method above


def _pause(client: Client, kind: Pausable, name: str, reason: str | None, by: str | None) -> Pause:
    who = person() if by is None else by
    return client.store.pause_claims(NewPause(kind=kind, name=name, by=who, reason=reason))


def _name(task: TaskHandle[..., Any] | str) -> str:
    if not isinstance(task, TaskHandle | str):
        raise InvalidValue(f"expected a task or the name of one, got: {shortened(task)}")
    return task.name if isinstance(task, TaskHandle) else task
