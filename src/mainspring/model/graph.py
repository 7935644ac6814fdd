"""A graph: jobs that are to be stored together, some of which come after others or take their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from uuid import UUID

from msgspec.structs import replace

from mainspring.errors import InvalidValue
from mainspring.model.job import NewJob
from mainspring.model.payload import Ref
from mainspring.model.text import shortened
from mainspring.model.workflow import Plan, Undo


class Addable(Protocol):
    """A task, with wishes for its job."""

    @property
    def name(self) -> str: ...

    def new_job(
        self,
        args: Sequence[object],
        kwargs: Mapping[str, object],
        *,
        refs: Sequence[Ref],
        workflow: UUID | None,
        after: UUID | None,
        keyed: bool = True,
    ) -> NewJob:
        """Return the job of a call, for a *workflow*; its id is larger than *after*. It has a key only if *keyed*."""
        ...

    def new_map(
        self,
        items: Sequence[object] | None,
        args: Sequence[object],
        kwargs: Mapping[str, object],
        *,
        refs: Sequence[Ref],
        workflow: UUID | None,
        after: UUID | None,
    ) -> NewJob:
        """Return the job that becomes one call for each of *items*, and gathers their results."""
        ...


class Node:
    """A job of a graph that is not stored yet. Where it is an argument of another, that gets its result."""

    def __init__(self, graph: Graph, job: NewJob) -> None:
        self._graph = graph
        self.id = job.id
        self.name = job.task

    def __repr__(self) -> str:
        return f"<job {self.id} of {self.name}, not enqueued yet>"

    def on_failure(self, task: Addable | str, /, *args: Any, **kwargs: Any) -> Node:
        """Have *task* undo what this job has done, if it succeeds and the workflow as a whole does not. Returns itself.

        All that is to be undone is undone one after the other, what was done last first.
        """
        self._graph.undo(self, task, args, kwargs)
        return self


class Graph:
    """Jobs in the order in which they were added: each comes after those that it needs, so no circle can close."""

    def __init__(self, workflow: UUID | None, after: UUID | None = None, *, whole: bool = True) -> None:
        """Its jobs are members of *workflow*, the *whole* of it or more of it; their ids are larger than *after*."""
        self._whole = whole
        self._workflow = workflow
        self._last = after or workflow
        self._undo: list[Undo] = []
        self.jobs: list[NewJob] = []
        self.output: Node | None = None  # whose result is that of the whole; the last one's unless told

    def add(self, task: Addable | str, /, *args: Any, **kwargs: Any) -> Node:
        """Add a job of *task*. It comes after the jobs of this graph among its arguments, and gets their results.

        `task.using(after=[...])` has it come after others, too.
        """
        task = self.task(task)
        refs: list[Ref] = []
        values = self._plain(list(args), ("args",), refs), self._plain(kwargs, ("kwargs",), refs)
        return self._grow(task.new_job(*values, refs=refs, workflow=self._workflow, after=self._last))

    def map(self, task: Addable | str, items: Any, /, *args: Any, **kwargs: Any) -> Node:
        """Add a job of *task* for each of *items*, with that as its first argument; the others are the same for all.

        *items* is a list, or a job of this graph that returns one. The result is the list of all results, in order.
        """
        task = self.task(task)
        if not isinstance(items, Node | list | tuple):
            raise InvalidValue(
                f"expected a list, or a job of this workflow that returns one, to map over, got: {shortened(items)}"
            )
        refs: list[Ref] = []
        known = self._plain(items, ("args", 0), refs)
        values = self._plain(list(args), ("args",), refs, first=1), self._plain(kwargs, ("kwargs",), refs)
        return self._grow(task.new_map(known, *values, refs=refs, workflow=self._workflow, after=self._last))

    def undo(self, node: Node, task: Addable | str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Take note of what undoes *node*."""
        self.check_open()
        task = self.task(task)
        if not self._whole:
            raise InvalidValue(
                f"expected on_failure({task.name}, ...) where a workflow is made as a whole, which then knows what to "
                f"undo, got it for {node!r}"
            )
        refs: list[Ref] = []
        values = self._plain(list(args), ("args",), refs), self._plain(kwargs, ("kwargs",), refs)
        # Without a key: nobody could do anything about one that is taken by then, and it must be undone.
        job = task.new_job(*values, refs=refs, workflow=self._workflow, after=self._last, keyed=False)
        self._last = job.id
        self._undo.append(Undo(node.id, job))

    @property
    def plan(self) -> Plan:
        """What is to become of the jobs and their results, as a workflow."""
        output = self.output.id if self.output else self.jobs[-1].id if self.jobs else None
        return Plan(begun=True, output=output, undo=tuple(self._undo))

    def task(self, task: Addable | str) -> Addable:
        """Return what *task* means. Here only tasks themselves are known, and none by its name."""
        if isinstance(task, str) or not hasattr(task, "new_job"):
            raise InvalidValue(
                f"expected a task, a function with @app.task, to add to a workflow, got: {shortened(task)}"
            )
        return task

    def check_open(self) -> None:
        """Refuse to add to what is complete. Here it never is."""

    def _grow(self, job: NewJob) -> Node:
        self.check_open()
        self.jobs.append(job if self._whole else replace(job, added=True))
        self._last = job.id
        return Node(self, job)

    def has(self, node: Node) -> bool:
        """Return whether *node* is one of its jobs."""
        return node._graph is self  # noqa: SLF001 - a node of ours, or of another graph

    def _plain(self, value: Any, path: tuple[int | str, ...], refs: list[Ref], first: int = 0) -> Any:
        """Return *value* with null in the place of each job of this graph in it, which is noted in *refs*."""
        match value:
            case Node():
                if not self.has(value):
                    raise InvalidValue(f"expected a job of this workflow as an argument, got one of another: {value!r}")
                refs.append(Ref(path, value.id))
                return None
            case list() | tuple():
                return [self._plain(one, (*path, first + n), refs) for n, one in enumerate(value)]
            case dict():
                return {name: self._plain(one, (*path, name), refs) for name, one in value.items()}
        return value
