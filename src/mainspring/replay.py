"""Replay of many dead letters: a few first, the rest at a rate, and an end when too many fail again."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from uuid import UUID

import msgspec

from mainspring.client import Client
from mainspring.model.dead import Letter, Replayed, Watch
from mainspring.model.job import Job, JobState
from mainspring.model.rate import Rate

Progress = Callable[[Replayed], object]
Halt = Callable[[], str | None]
"""Says why to stop, as soon as there is a reason to."""

_BATCH = 500
_PAUSE, _SHORTEST_PAUSE = 0.1, 0.001
"""Seconds between looks at what came of the jobs, at most, and at least even when the next ones are all but due."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How to go about a replay."""

    canary: int
    rate: Rate
    stop_at: float
    reason: str
    rewrite: Callable[[Job], str] | None = None
    progress: Progress | None = None
    halt: Halt | None = None


class Replay:
    """One replay under way. What it has done is in the database alone, so it can be run again after a crash."""

    def __init__(self, client: Client, letters: Sequence[Letter], plan: Plan) -> None:
        self._store = client.store
        self._clock = client.clock
        self._plan = plan
        self._letters = iter(letters)
        self._ahead = len(letters)  # of the letters, those that were not tried yet
        self._waiting: dict[UUID, None] = {}
        self._watch = Watch(plan.stop_at)
        self._report = Replayed(found=len(letters))

    def run(self) -> Replayed:
        self._send_canary()
        if self._report.stopped is None:
            self._send_rest()
        return self._report

    def _send_canary(self) -> None:
        while self._ahead and self._report.replayed < self._plan.canary:
            self._send(self._plan.canary - self._report.replayed)
        # As a whole: those that have not finished yet are taken for good until they have.
        while not self._objects(self._report.replayed) and self._waiting:
            self._clock.sleep(_PAUSE)
            self._look()

    def _send_rest(self) -> None:
        per_second = self._plan.rate.per_second
        began, sent = self._clock.steady(), 0
        while (self._ahead or self._waiting) and not self._objects():
            due = 1 + math.floor((self._clock.steady() - began) * per_second) - sent
            missed = max(0, due - math.ceil(per_second))  # while it stood still; to make up for that would be a flood
            sent += missed + self._send(due - missed)
            self._look()
            if self._ahead or self._waiting:
                next_due = began + sent / per_second - self._clock.steady()
                self._clock.sleep(max(_SHORTEST_PAUSE, min(_PAUSE, next_due)) if self._ahead else _PAUSE)

    def _send(self, count: int) -> int:
        """Replay the next *count* letters, or as many as fit a batch, and return how many were tried."""
        batch = list(islice(self._letters, max(0, min(count, _BATCH))))
        if not batch:
            return 0
        revived = self._store.replay_letters(batch, self._plan.reason, self._plan.rewrite)
        self._ahead -= len(batch)
        self._waiting |= dict.fromkeys(letter.id for letter in batch if letter.id in revived)
        self._tell(replayed=self._report.replayed + len(revived))
        return len(batch)

    def _look(self) -> None:
        """See which have finished; of very many that wait, some at a time."""
        looked_at = list(islice(self._waiting, _BATCH))
        found = self._store.get(looked_at) if looked_at else {}
        states = {job_id: found[job_id].state if job_id in found else None for job_id in looked_at}
        for job_id, state in states.items():
            del self._waiting[job_id]
            if state is not None and not state.final:
                self._waiting[job_id] = None  # behind the others, whose turn is next
        self._count(state for state in states.values() if state is None or state.final)

    def _count(self, finished: Iterable[JobState | None]) -> None:
        succeeded = failed = cancelled = 0
        for state in finished:
            succeeded += state is JobState.SUCCEEDED
            failed += state is JobState.FAILED
            cancelled += state not in (JobState.SUCCEEDED, JobState.FAILED)
            if state is not None:
                self._watch.saw(state)
        if succeeded or failed or cancelled:
            self._tell(
                succeeded=self._report.succeeded + succeeded,
                failed=self._report.failed + failed,
                cancelled=self._report.cancelled + cancelled,
            )

    def _objects(self, *expected: int) -> bool:
        """Return whether too many have failed again, or somebody wants it to stop, which is then on record."""
        objection = self._watch.objection(*expected)
        if objection is None and self._plan.halt is not None:
            objection = self._plan.halt()
        if objection is not None and self._report.stopped is None:
            self._tell(stopped=objection)
        return objection is not None

    def _tell(self, **changes: object) -> None:
        self._report = msgspec.structs.replace(self._report, **changes)
        if self._plan.progress is not None:
            self._plan.progress(self._report)
