"""Settle: write what became of jobs, each write guarded by state and fence.

The one writer: worker, reaper and operator all end here with a settlement that `model.lifecycle` decided.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from msgspec.structs import replace

from mainspring.model import lifecycle
from mainspring.model.job import JobState, Wish
from mainspring.model.lifecycle import Asked, Settlement
from mainspring.model.outcome import SPARED, Paused
from mainspring.store import rows
from mainspring.store.breakers import judge, prepare
from mainspring.store.chunks import MOST, MOST_CHARACTERS, chunks
from mainspring.store.database import DUE, FIRE, Database, Row, Runner
from mainspring.store.members import plant, share_fate
from mainspring.store.notify import Ruled, notify
from mainspring.store.protocol import Settled
from mainspring.store.release import free
from mainspring.store.rows import to_job
from mainspring.store.tell import FINISH, TELL, Ended, leave, tell
from mainspring.store.turns import give_back


def settle(db: Database, settlements: Sequence[Settlement], ruled: Ruled) -> Settled:
    """See `protocol.Settles.settle`."""
    if not settlements:
        return Settled()
    calm = prepare(db, settlements)
    some_rules = ruled()
    if (
        calm
        and not some_rules
        and len(endings := _by_ending(settlements)) == 1
        and settlements[0].state.final
        and not _matter(settlements)
    ):
        ((ending, alike),) = endings.items()
        document = rows.endings(alike)
        if len(alike) <= MOST and len(document) <= MOST_CHARACTERS:
            # The common case, and one statement: no transaction to open and close around it. It leaves alone those
            # for which somebody has come to wait since they were claimed.
            settled = db.attempt(lambda runner: _finish(runner, ending, alike, document, awaited=False).all)
            if len(settled) == len(alike):
                return Settled(settled)
            settlements = [settlement for settlement in alike if settlement.job_id not in settled]
            others = _settle_in_transaction(db, settlements, ruled=some_rules)
            return Settled(settled | others, others.otherwise)
    return _settle_in_transaction(db, settlements, ruled=some_rules)


def _settle_in_transaction(db: Database, settlements: Sequence[Settlement], *, ruled: bool) -> Settled:
    settled, topics = db.transact(lambda tx: apply(tx, settlements, ruled=ruled))
    db.wake(topics)
    return settled


def apply(tx: Runner, settlements: Sequence[Settlement], *, ruled: bool = True) -> tuple[Settled, set[str]]:
    """Write *settlements* in the transaction *tx*; return which held and the topics to wake afterwards.

    Those are told of it who want to be: by the jobs themselves, and, if there are rules, by these.
    """
    if schedules := _schedules(settlements):
        tx.run("lock_followed", ended=rows.ended(dict.fromkeys(schedules, False)))
    settlements, recorded = judge(tx, settlements)
    settled, topics, wished = _write(tx, settlements)
    granted = _grant(tx, wished)
    also, wakes, _ = _write(tx, granted)
    wakes |= _answer(tx, [one for one in settlements if one.signal is not None and one.job_id in settled.now])
    # Of what an earlier try of this call has settled nothing follows now: that did it all, and the job may have been
    # claimed since, so that what seems to be free is its next attempt's.
    moved = [*(one for one in settlements if one.job_id in settled.now), *granted]
    topics |= wakes | _pass_on(tx, moved, awaited=settled.awaited or also.awaited)
    # After all jobs, and all at once, because that is the order in which everybody locks.
    topics |= free(tx, list({(key, one.job_id) for one in moved for key in one.holds}), recorded)
    give_back(tx, (one.leaves for one in moved))
    # What was granted meanwhile makes what came before it no news.
    topics |= notify(tx, [one for one in moved if one.job_id not in also.now], ruled=ruled)
    otherwise = _otherwise(settlements, [one for one in granted if one.job_id in also.now], judged=bool(recorded))
    return Settled(settled.all | also.all, otherwise), topics


def _otherwise(
    settlements: Sequence[Settlement], granted: Sequence[Settlement], *, judged: bool
) -> dict[UUID, Settlement]:
    """Return what became of those of *settlements* that were spared, or whose job became what somebody had wished."""
    spared = {one.job_id: one for one in settlements if one.outcome == SPARED} if judged else {}
    if not granted:
        return spared
    wished = {one.job_id: one.state for one in granted}
    came = {one.job_id: replace(one, state=wished[one.job_id]) for one in settlements if one.job_id in wished}
    return spared | came


def _answer(tx: Runner, moved: Sequence[Settlement]) -> set[str]:
    """Let those go on at once whose signal has come while they still ran; return the topics to wake.

    Who sends one locks the job first, as this transaction has by now: so one of the two sees what the other has done.
    """
    waits = [(one.job_id, one.signal) for one in moved if one.state is JobState.BLOCKED]
    if not waits:
        return set()
    sent = {job_id for (job_id,) in tx.run("sent_meanwhile", waits=rows.document(waits))}
    jobs = [to_job(tuple(row)) for _, *row in tx.run("lock_live", ids=rows.ids(sent))] if sent else []
    answers = [lifecycle.signalled(job, job.signal) for job in jobs if job.signal is not None]
    _, topics, _ = _write(tx, [answer for answer in answers if answer is not None])
    return topics | {DUE}  # at which promote ends the wait of the others


class _Written(NamedTuple):
    """Which jobs were moved now, and which by an earlier try of the same call, whose reply was lost."""

    now: set[UUID]
    before: set[UUID]
    awaited: bool = False  # whether some of those that were moved now have children

    @property
    def all(self) -> set[UUID]:
        return self.now | self.before

    def __or__(self, other: _Written) -> _Written:
        return _Written(self.now | other.now, self.before | other.before, self.awaited or other.awaited)


def _write(tx: Runner, settlements: Sequence[Settlement]) -> tuple[_Written, set[str], list[Row]]:
    """Write *settlements*; return which held, the topics to wake, and those of whose job something else is wished."""
    settled = _Written(set(), set())
    for ending, alike in _by_ending(settlements).items():
        if ending.state.final:
            for piece in chunks(alike, _characters):
                settled |= _finish(tx, ending, piece, rows.endings(piece), awaited=True)
    topics = _follow(tx, settlements, settled.all)
    # A job that is given twice is settled once; the database would refuse its second attempt under the same fence.
    again = list({settlement.job_id: settlement for settlement in settlements if not settlement.state.final}.values())
    if not again:
        return settled, topics, []
    moved = [
        row
        for piece in chunks(again, _characters)
        for row in tx.run("settle_again", settlements=rows.settlements(piece))
    ]
    paused = {settlement.job_id for settlement in again if settlement.outcome == Paused.name}
    topics |= {_topic(queue, state) for _, queue, state, _, _ in moved if state is not JobState.BLOCKED}
    settled |= _Written({row[0] for row in moved}, _settled_before(tx, again))
    return settled, topics, [row for row in moved if row[3] is not None or row[0] in paused]


def _matter(settlements: Sequence[Settlement]) -> bool:
    """Return whether anybody else depends on the end of these jobs, comes with it, or is to be told of it."""
    return any(one.schedule or one.holds or one.matters or one.spawn or one.tells for one in settlements)


def _schedules(settlements: Sequence[Settlement]) -> list[str]:
    """Return the schedules that may wait for the end of these jobs. One that goes on is none of their business."""
    return [settlement.schedule for settlement in settlements if settlement.schedule and settlement.state.final]


def _follow(tx: Runner, settlements: Sequence[Settlement], ended: set[UUID]) -> set[str]:
    """Let schedules know which of their jobs have ended: some wait for it. Return the topics to wake."""
    succeeded: dict[str, bool] = {}
    for settlement in settlements:
        if settlement.schedule and settlement.job_id in ended:
            success = settlement.state is JobState.SUCCEEDED
            succeeded[settlement.schedule] = succeeded.get(settlement.schedule, False) or success
    waited = tx.run("follow", ended=rows.ended(succeeded)) if succeeded else []
    return {FIRE} if (True,) in waited else set()


def _pass_on(tx: Runner, moved: Sequence[Settlement], *, awaited: bool) -> set[str]:
    """Store what comes with jobs that have *moved*, and tell those that wait for their ends; return whom to wake."""
    related = [one for one in moved if one.spawn or (one.state.final and (awaited or one.workflow))]
    if not related:
        return set()
    topics, decided = plant(tx, [job for one in related for job in one.spawn])
    ended = [one for one in related if one.state.final]
    joined = Counter(job.workflow for one in ended for job in one.spawn if job.workflow is not None)
    now = [Ended(one.job_id, one.state, one.workflow) for one in ended if one.source is JobState.RUNNING]
    told = tell(tx, now, joined, awaited=awaited)
    decided += [*told.settlements, *share_fate(tx, [job for one in related for job in one.spawn])]
    settled, wakes, _ = _write(tx, decided)
    later = [one.job_id for one in ended if one.source is not JobState.RUNNING]
    later += [one.job_id for one in decided if one.job_id in settled.now and one.state.final and one.matters]
    return topics | wakes | leave(tx, TELL, later) | leave(tx, FINISH, told.complete)


class _Ending(NamedTuple):
    """What a batch of jobs that end alike has in common."""

    source: JobState
    state: JobState
    outcome: str | None
    losses: int


def _by_ending(settlements: Sequence[Settlement]) -> dict[_Ending, list[Settlement]]:
    groups: dict[tuple[JobState, JobState, str | None, int], list[Settlement]] = {}
    for settlement in settlements:
        ending = (settlement.source, settlement.state, settlement.outcome, settlement.losses)
        groups.setdefault(ending, []).append(settlement)
    return {_Ending(*ending): alike for ending, alike in groups.items()}


def _topic(queue: str, state: JobState) -> str:
    return DUE if state in (JobState.SCHEDULED, JobState.RETRYING) else queue


def _finish(runner: Runner, ending: _Ending, alike: Sequence[Settlement], document: str, *, awaited: bool) -> _Written:
    given = {settlement.job_id for settlement in alike}
    # The ids come back only when some were stale; to read 500 of them would take longer than to settle 100 jobs.
    ((settled, ids, children),) = runner.run(
        "settle_done",
        settlements=document,
        expected=len(given),
        awaited=awaited,
        forgets=alike[0].forgets,
        **ending._asdict(),
    )
    finished = given if settled == len(given) else rows.read_ids(ids)
    return _Written(finished, _settled_before(runner, alike), children)


def _settled_before(runner: Runner, settlements: Sequence[Settlement]) -> set[UUID]:
    """Return the ids of those that an earlier try of this call settled, when its reply was lost."""
    if not runner.in_doubt:
        return set()
    history = runner.run("attempts", ids=rows.ids(settlement.job_id for settlement in settlements))
    past = {(job_id, fence, outcome) for job_id, fence, _, _, _, _, outcome, *_ in history}
    return {
        settlement.job_id
        for settlement in settlements
        if settlement.outcome and (settlement.job_id, settlement.fence, settlement.outcome) in past
    }


def _characters(settlement: Settlement) -> int:
    failure = settlement.failure
    return len(settlement.result or "") + (len(failure.message) + len(failure.traceback or "") if failure else 0)


def _grant(tx: Runner, wished: list[Row]) -> list[Settlement]:
    """Return how wishes are granted that came while their attempt ended, for no worker will hear of them any more.

    One that paused without a wish to pause has been resumed meanwhile.
    """
    if not wished:
        return []
    asked = {job_id: (wish, reason) for job_id, _, _, wish, reason in wished}
    granted: list[Settlement] = []
    left: list[Asked] = []
    for _, *row in tx.run("lock_live", ids=rows.ids(asked)):
        job = to_job(tuple(row))
        wish, reason = asked[job.id]
        match wish:
            case Wish.CANCEL:
                answer = lifecycle.cancel(job, reason)
            case Wish.PAUSE:
                answer = lifecycle.pause(job, reason)
            case None:
                answer = lifecycle.resume(job, now=job.run_at)  # it was due, for it ran
        if isinstance(answer, Settlement):
            granted.append(answer)
        elif answer is not None:  # it has just become a workflow, which ends when its members have
            left.append(answer)
    if left:
        tx.run("ask", wishes=rows.wishes(left))
    return granted
