"""Count: what was settled, batch by batch, so that a job in a flood pays next to nothing for it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from mainspring.model.job import JobState
from mainspring.model.lifecycle import Settlement
from mainspring.model.outcome import Failed, Returned, Succeeded, TimedOut
from mainspring.model.text import counted
from mainspring.tally import SECONDS, Counts, Histogram, Place, Tally
from mainspring.worker.held import Held

_EXACT = 10
"""Jobs of a batch, a team and a queue whose times are all looked at; of more, about as many stand for the others."""

_FAILURES = (Failed.name, TimedOut.name)

log = logging.getLogger("mainspring.worker")

Ended = tuple[Held, Settlement]


def count(tally: Tally, batch: Sequence[Ended]) -> None:
    """Add to *tally* what became of a *batch* of settled jobs. Raises nothing: they are settled, counted or not."""
    try:
        _count(tally, batch)
    except Exception:
        log.exception("%s could not be counted", counted(len(batch), "settled job"))


def _count(tally: Tally, batch: Sequence[Ended]) -> None:
    endings = _endings(batch)
    places = {place for place, _, _, _ in endings}
    with tally.lock:
        tally.settles.add(len(batch))
        for (place, task, outcome, state), many in endings.items():
            if outcome is not None and outcome != Returned.name:
                tally.attempts[task, outcome] += many
            if state.final:
                tally.finished[task, state.value] += many
            _count_for_charts(tally.counts(place), outcome, state, many)
        for place, ended in _by_place(batch, places).items():
            _time(tally, place, ended)


def _endings(batch: Sequence[Ended]) -> Mapping[tuple[Place, str, str | None, JobState], int]:
    """Return how many there are of each place, task, outcome and state.

    A flood is mostly of one kind, and then nothing is made for each job: that would be more work for the garbage
    collector than for us.
    """
    tasks = {held.task.name for held, _ in batch}
    outcomes = {settlement.outcome for _, settlement in batch}
    queues = {held.job.queue for held, _ in batch}
    teams = {held.job.team for held, _ in batch}
    if len(tasks) == len(queues) == len(teams) == 1 and outcomes == {Succeeded.name}:
        return {((teams.pop(), queues.pop()), tasks.pop(), Succeeded.name, JobState.SUCCEEDED): len(batch)}
    return Counter([(_place(held), held.task.name, settlement.outcome, settlement.state) for held, settlement in batch])


def _by_place(batch: Sequence[Ended], places: Collection[Place]) -> Mapping[Place, Sequence[Ended]]:
    if len(places) == 1:
        return dict.fromkeys(places, batch)
    parted: dict[Place, list[Ended]] = {place: [] for place in places}
    for ended in batch:
        parted[_place(ended[0])].append(ended)
    return parted


def _place(held: Held) -> Place:
    return held.job.team, held.job.queue


def _count_for_charts(counts: Counts, outcome: str | None, state: JobState, many: int) -> None:
    if state is JobState.SUCCEEDED:
        counts.succeeded += many
    elif state is JobState.FAILED:
        counts.failed += many
    elif outcome in _FAILURES and state is JobState.RETRYING:
        counts.retried += many


def _time(tally: Tally, place: Place, ended: Sequence[Ended]) -> None:
    step, queue = 1 + len(ended) // _EXACT, place[1]
    if queue not in tally.runs:
        tally.waits[queue], tally.runs[queue] = Histogram(SECONDS), Histogram(SECONDS)
    waits, runs, drawn = tally.waits[queue], tally.runs[queue], tally.counts(place).waits
    for index in range(0, len(ended), step):
        held, times = ended[index][0], min(step, len(ended) - index)
        if held.began:  # or else it went back unstarted
            waited = max(0.0, _waited(held))
            waits.add(waited, times)
            drawn.add(waited, times)
            runs.add(held.took, times)


def _waited(held: Held) -> float:
    """Return for how many seconds the job had been due when it began.

    Until the claim by the database's clock, and from there on by ours: they need not agree.
    """
    job = held.job
    assert job.started_at is not None
    due = max(job.run_at, job.created_at)
    return (job.started_at - due).total_seconds() + held.began - held.claimed
