"""Count: what was settled, batch by batch, so that a job in a flood pays next to nothing for it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence

from mainspring.model.lifecycle import Settlement
from mainspring.model.outcome import Returned, Succeeded
from mainspring.model.text import counted
from mainspring.tally import SECONDS, Histogram, Tally
from mainspring.worker.held import Held

_EXACT = 10
"""Jobs of a batch and a queue whose times are all looked at; of more, about as many stand for the others."""

log = logging.getLogger("mainspring.worker")

Ended = tuple[Held, Settlement]


def count(tally: Tally, batch: Sequence[Ended]) -> None:
    """Add to *tally* a batch of jobs whose settlements held. Raises nothing: they are settled, counted or not."""
    try:
        _count(tally, batch)
    except Exception:
        log.exception("%s could not be counted", counted(len(batch), "settled job"))


def _count(tally: Tally, batch: Sequence[Ended]) -> None:
    endings = _endings(batch)
    queues = {queue for queue, _, _ in endings}
    with tally.lock:
        tally.settles.add(len(batch))
        for (_, task, outcome), many in endings.items():
            if outcome is not None and outcome != Returned.name:
                tally.attempts[task, outcome] += many
            if outcome == Succeeded.name:
                tally.finished[task, outcome] += many
            else:
                _count_finished(tally, [ended for ended in batch if ended[1].outcome == outcome], task)
        for queue in queues:
            _time(tally, queue, batch if len(queues) == 1 else [one for one in batch if one[0].job.queue == queue])


def _endings(batch: Sequence[Ended]) -> Mapping[tuple[str, str, str | None], int]:
    """Return how many there are of each queue, task and outcome.

    A flood is mostly of one kind, and then nothing is made for each job: that would be more work for the garbage
    collector than for us.
    """
    tasks = {held.task.name for held, _ in batch}
    outcomes = {settlement.outcome for _, settlement in batch}
    queues = {held.job.queue for held, _ in batch}
    if len(tasks) == len(outcomes) == len(queues) == 1:
        return {(queues.pop(), tasks.pop(), outcomes.pop()): len(batch)}
    return Counter([(held.job.queue, held.task.name, settlement.outcome) for held, settlement in batch])


def _count_finished(tally: Tally, alike: Sequence[Ended], task: str) -> None:
    """Count those of *task* that have ended for good, as attempts that did not succeed may or may not."""
    for held, settlement in alike:
        if settlement.state.final and held.task.name == task:
            tally.finished[task, settlement.state.value] += 1


def _time(tally: Tally, queue: str, ended: Sequence[Ended]) -> None:
    step = 1 + len(ended) // _EXACT
    if queue not in tally.runs:
        tally.waits[queue], tally.runs[queue] = Histogram(SECONDS), Histogram(SECONDS)
    waits, runs = tally.waits[queue], tally.runs[queue]
    for index in range(0, len(ended), step):
        held, times = ended[index][0], min(step, len(ended) - index)
        if held.began:  # or else it went back unstarted
            waits.add(max(0.0, _waited(held)), times)
            runs.add(held.took, times)


def _waited(held: Held) -> float:
    """Return for how many seconds the job had been due when it began.

    Until the claim by the database's clock, and from there on by ours: they need not agree.
    """
    job = held.job
    assert job.started_at is not None
    due = max(job.run_at, job.created_at)
    return (job.started_at - due).total_seconds() + held.began - held.claimed
