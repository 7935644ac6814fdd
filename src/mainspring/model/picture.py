"""A picture of a workflow: its jobs, how each stands, and which come after which."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

import msgspec

from mainspring.model.job import Job, JobState
from mainspring.model.span import span
from mainspring.model.text import counted
from mainspring.model.workflow import Plan, plan_of, standing, why_failed

MARKS = {
    JobState.BLOCKED: "·",
    JobState.SCHEDULED: "·",
    JobState.READY: "·",
    JobState.RUNNING: "▶",
    JobState.RETRYING: "↻",
    JobState.PAUSED: "⏸",
    JobState.SUCCEEDED: "✓",
    JobState.FAILED: "✗",
    JobState.CANCELLED: "⊘",
    JobState.EXPIRED: "⊘",
}

TIMES = "×"

_ALIKE = 20
"""Jobs of one task, after and before the same others, that are drawn one by one; more are one line."""

_DEEPEST = 10
"""Levels by which lines are indented; further down, they say what they come after."""

_NAMED = 3
_WIDEST = 40
_WAITING = (JobState.BLOCKED, JobState.SCHEDULED, JobState.READY)
_TOLD = (
    JobState.SUCCEEDED,
    JobState.RUNNING,
    JobState.RETRYING,
    JobState.FAILED,
    JobState.CANCELLED,
    JobState.EXPIRED,
    JobState.PAUSED,
    JobState.READY,
    JobState.SCHEDULED,
    JobState.BLOCKED,
)
_COLOURS = {
    JobState.RUNNING: "fill:#cff4fc,stroke:#087990,color:#000",
    JobState.RETRYING: "fill:#fff3cd,stroke:#997404,color:#000",
    JobState.PAUSED: "fill:#e2d9f3,stroke:#59359a,color:#000",
    JobState.SUCCEEDED: "fill:#d1e7dd,stroke:#146c43,color:#000",
    JobState.FAILED: "fill:#f8d7da,stroke:#b02a37,color:#000",
    JobState.EXPIRED: "fill:#f8d7da,stroke:#b02a37,color:#000",
}
_GREY = "fill:#f8f9fa,stroke:#6c757d,color:#000"

# All but what can mean nothing to mermaid: letters of any script, digits, and some signs.
_SIGNS = re.compile(r"[^\w .,:/×()?-]")

Counts = Mapping[JobState, int]


class Kind(StrEnum):
    """What a job of a workflow is."""

    JOB = "job"
    WORKFLOW = "workflow"  # it has jobs of its own
    MAP = "map"  # likewise, one for each of many values
    UNDO = "undo"  # it undoes what another has done


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A job of a workflow, how it stands, and those that it comes after."""

    id: UUID
    task: str
    state: JobState
    standing: str  # the state, but of a workflow that waits for its jobs that it is under way
    kind: Kind = Kind.JOB
    took: timedelta | None = None  # so far, if it runs
    parents: tuple[UUID, ...] = ()  # some of which may be no jobs of this workflow
    counts: Counts = {}  # how many of its jobs are in which state, if it has any
    why: str | None = None  # it failed or expired, in one line
    created_at: datetime | None = None
    started_at: datetime | None = None  # of the present attempt, or of the one that ended it
    finished_at: datetime | None = None

    @property
    def looks(self) -> JobState:
        """The state that it is drawn in: a workflow runs while its jobs do."""
        return self.state if self.standing == self.state else JobState.RUNNING


class Line(NamedTuple):
    """A line of the picture, and the state of what it tells of."""

    depth: int
    mark: str
    text: str
    looks: JobState


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow as it was at one moment. As text, it is drawn for a terminal."""

    id: UUID
    task: str
    state: JobState
    standing: str
    kind: Kind
    counts: Counts  # how many of its jobs are in which state
    nodes: tuple[Node, ...]  # its jobs, oldest first; of very many, the first

    @property
    def edges(self) -> list[tuple[UUID, UUID]]:
        """Which job comes before which, of those that are drawn."""
        known = {node.id for node in self.nodes}
        return [(parent, node.id) for node in self.nodes for parent in node.parents if parent in known]

    @property
    def left_out(self) -> int:
        """How many jobs are not among the nodes."""
        return max(0, sum(self.counts.values()) - len(self.nodes))

    @property
    def progress(self) -> str:
        """How far it is: `6 of 12 jobs: 5 succeeded, 1 running, 1 failed`; the others have not started."""
        counts = Counter(self.counts)
        # What waits for jobs of its own is at work.
        moved = sum(node.state is JobState.BLOCKED and node.looks is JobState.RUNNING for node in self.nodes)
        counts[JobState.BLOCKED] -= moved
        counts[JobState.RUNNING] += moved
        return progress(counts)

    def boxes(self) -> list[Box]:
        """Return what is drawn, each after its parents: a job, or many that are alike."""
        return _boxes(self)

    def lines(self) -> list[Line]:
        """Return the picture line by line: each job below one that it comes after, and after all of those."""
        boxes = _boxes(self)
        rows = [(min(depth, _DEEPEST), depth > _DEEPEST, box) for depth, box in _ordered(boxes)]
        width = max((2 * depth + len(box.title) for depth, _, box in rows if box.aligned), default=0)
        state = max((len(box.told[0]) for box in boxes if box.aligned), default=0)
        lines = []
        for depth, deep, box in rows:
            told = [box.title, *box.told, box.after(boxes, always=deep)]
            if box.aligned:
                told[:2] = told[0].ljust(min(width, _WIDEST) - 2 * depth), told[1].ljust(state)
            lines.append(Line(depth, MARKS[box.looks], "  ".join(filter(None, told)).rstrip(), box.looks))
        if self.left_out and not _is_one(self):
            lines.append(Line(0, "…", f"and {counted(self.left_out, 'job')} more", JobState.BLOCKED))
        return lines

    def __str__(self) -> str:
        return "\n".join(f"{'  ' * line.depth}{line.mark} {line.text}" for line in self.lines())

    def mermaid(self) -> str:
        """Return it as a flowchart for mermaid, with states as classes."""
        boxes = _boxes(self)
        lines = ["flowchart TD"]
        for number, box in enumerate(boxes, 1):
            label = "<br/>".join([_escaped(box.title), *([_escaped(", ".join(box.told))] if box.told else [])])
            shape = f'["{label}"]' if box.kind in (Kind.JOB, Kind.UNDO) else f'[["{label}"]]'
            lines.append(f"    n{number}{shape}:::{box.looks}")
        lines += [f"    n{parent + 1} --> n{n}" for n, box in enumerate(boxes, 1) for parent in box.parents]
        used = {box.looks for box in boxes}
        lines += [f"    classDef {state} {_COLOURS.get(state, _GREY)}" for state in JobState if state in used]
        return "\n".join(lines)


def picture_of(job: Job, members: Sequence[Job], counts: Mapping[UUID, Counts], now: datetime) -> Picture:
    """Return the picture of the workflow *job* with these *members*, oldest first.

    *counts* are those of its own jobs, by its id, and of the jobs of members that have some.
    """
    plan = plan_of(job) or Plan()
    undoing = {undo.job.id for undo in plan.undo}
    return Picture(
        id=job.id,
        task=job.task,
        state=job.state,
        standing=standing(job),
        kind=Kind.MAP if plan.gathers else Kind.WORKFLOW,
        counts=counts.get(job.id, {}),
        nodes=tuple(_node(member, member.id in undoing, counts.get(member.id, {}), now) for member in members),
    )


def progress(counts: Counts) -> str:
    """Return how far a workflow is whose jobs are in these states."""
    begun = {state: count for state, count in counts.items() if state not in _WAITING}
    ended = sum(count for state, count in begun.items() if state.final)
    told = tally(begun)
    return f"{ended:,} of {counted(sum(counts.values()), 'job')}{f': {told}' if told else ''}"


def tally(counts: Counts) -> str:
    """Return *counts* as text: `4,998 succeeded, 2 failed`."""
    return ", ".join(f"{counts[state]:,} {state}" for state in _TOLD if counts.get(state))


def _node(job: Job, undoes: bool, counts: Counts, now: datetime) -> Node:
    plan = plan_of(job)
    kind = Kind.UNDO if undoes else Kind.JOB
    if plan is not None:
        kind = Kind.MAP if plan.gathers else Kind.WORKFLOW
    node = Node(
        id=job.id,
        task=job.task,
        state=job.state,
        standing=standing(job),
        kind=kind,
        parents=tuple(edge.parent for edge in job.beginnings.parents),
        counts=counts,
        why=why_failed(job) if job.state in (JobState.FAILED, JobState.EXPIRED) else None,
        created_at=job.created_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
    )
    end = now if node.looks is JobState.RUNNING else job.finished_at
    took = None if end is None or job.started_at is None else max(timedelta(0), end - job.started_at)
    return msgspec.structs.replace(node, took=took)


class Box(msgspec.Struct, frozen=True, kw_only=True):
    """What is drawn in one place: a job, or many that are alike. Parents are the numbers of other boxes."""

    name: str
    title: str
    told: list[str]
    looks: JobState
    kind: Kind
    parents: list[int]
    outside: int = 0  # parents that are no jobs of this workflow
    aligned: bool = True  # the title is short, and what is told stands in columns
    nodes: tuple[Node, ...] = ()  # the jobs that it stands for, as far as they are known
    counts: Counts = {}  # if it stands for many: how many are in which state

    def after(self, boxes: Sequence[Box], *, always: bool) -> str:
        """Return what it comes after, where its place does not say that by itself."""
        if len(self.parents) + self.outside < 2 and not self.outside and not always:
            return ""
        names = [boxes[parent].name for parent in self.parents]
        if self.outside:
            names.append(f"{counted(self.outside, 'job')} outside")
        more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
        return f"after {', '.join(names[:_NAMED])}{more}" if names else ""


def _is_one(picture: Picture) -> bool:
    """Return whether its jobs are drawn as one: they are alike, and perhaps more than are known."""
    return picture.kind is Kind.MAP and sum(picture.counts.values()) > _ALIKE


def _boxes(picture: Picture) -> list[Box]:
    """Return what is to be drawn, each after its parents."""
    if _is_one(picture):
        return [_many(picture.task, picture.counts, [], nodes=picture.nodes)]
    groups = _groups(picture.nodes)
    names = _numbered([group[0].task for group in groups])
    places = {node.id: place for place, group in enumerate(groups) for node in group}
    boxes = []
    for name, group in zip(names, groups, strict=True):
        node = group[0]
        parents = sorted({places[parent] for parent in node.parents if parent in places})
        outside = sum(parent not in places for parent in node.parents)
        if len(group) > 1:
            boxes.append(_many(name, Counter(one.state for one in group), parents, outside, nodes=group))
        else:
            boxes.append(_one(name, node, parents, outside))
    return boxes


def _groups(nodes: Sequence[Node]) -> list[list[Node]]:
    """Return *nodes*, those together that are alike if they are many."""
    children: dict[UUID, set[UUID]] = {}
    for node in nodes:
        for parent in node.parents:
            children.setdefault(parent, set()).add(node.id)
    alike: dict[object, list[Node]] = {}
    for node in nodes:
        relations = frozenset(node.parents), frozenset(children.get(node.id, ()))
        alike.setdefault((node.task, *relations) if node.kind is Kind.JOB else node.id, []).append(node)
    groups = [
        part for group in alike.values() for part in ([group] if len(group) > _ALIKE else [[one] for one in group])
    ]
    return sorted(groups, key=lambda group: group[0].id)


def _numbered(tasks: Sequence[str]) -> list[str]:
    """Return names for boxes of these *tasks*, with numbers where there are several of one."""
    total, seen = Counter(tasks), Counter[str]()
    names = []
    for task in tasks:
        seen[task] += 1
        names.append(task if total[task] == 1 else f"{task} {seen[task]}")
    return names


def _one(name: str, node: Node, parents: list[int], outside: int) -> Box:
    if node.kind is Kind.MAP and node.counts:
        return _many(name, node.counts, parents, outside, node)
    title = name if node.kind is not Kind.MAP else f"{name} {TIMES} {_unknown(node)}"
    told = [node.standing, *_length(node)]
    if node.counts:
        told.append(progress(node.counts))
    if node.kind is Kind.UNDO:
        told.append("to undo")
    return Box(
        name=name,
        title=title,
        told=told,
        looks=node.looks,
        kind=node.kind,
        parents=parents,
        outside=outside,
        nodes=(node,),
    )


def _many(
    name: str,
    counts: Counts,
    parents: list[int],
    outside: int = 0,
    node: Node | None = None,
    nodes: Sequence[Node] = (),
) -> Box:
    """Return the box of many jobs that are alike: *nodes*, or those of the map *node*."""
    return Box(
        name=name,
        title=f"{name} {TIMES} {sum(counts.values()):,}: {tally(counts)}",
        told=_length(node) if node else [],
        looks=node.looks if node else _look_of(counts),
        kind=Kind.MAP,
        parents=parents,
        outside=outside,
        aligned=False,
        nodes=(node,) if node else tuple(nodes),
        counts=counts,
    )


def _length(node: Node) -> list[str]:
    return [] if node.took is None else [span(node.took)]


def _unknown(node: Node) -> str:
    """Return how many jobs a map has that has none: nobody knows, unless it has ended well."""
    return "0" if node.state is JobState.SUCCEEDED else "?"


def _look_of(counts: Counts) -> JobState:
    """Return the state in which jobs that are in these states are drawn together."""
    present = {state for state, count in counts.items() if count}
    if len(present) == 1:
        return present.pop()
    if not all(state.final for state in present):
        return JobState.BLOCKED if present <= set(_WAITING) else JobState.RUNNING
    return next(state for state in (JobState.FAILED, JobState.EXPIRED, JobState.CANCELLED) if state in present)


def _ordered(boxes: Sequence[Box]) -> Iterator[tuple[int, Box]]:
    """Yield *boxes* with their depths: each below the last of its parents, as soon as all of those were there."""
    children: dict[int, list[int]] = {}
    for place, box in enumerate(boxes):
        for parent in box.parents:
            children.setdefault(parent, []).append(place)
    left = [len(box.parents) for box in boxes]
    stack = [(0, place) for place, count in enumerate(left) if not count][::-1]
    while stack:
        depth, place = stack.pop()
        yield depth, boxes[place]
        free = []
        for child in children.get(place, ()):
            left[child] -= 1
            if not left[child]:
                free.append(child)
        stack += [(depth + 1, child) for child in reversed(free)]


def _escaped(text: str) -> str:
    """Return *text* as mermaid shows it in quotes: it has entities of its own, that begin with a hash."""
    return _SIGNS.sub(lambda sign: f"#{ord(sign[0])};", " ".join(text.split()))
