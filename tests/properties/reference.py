"""A reference store: what the real ones promise, in plain Python over a dict, one caller at a time.

What becomes of a job is asked of the lifecycle, as in the real stores; everything else (due times, places in the
queue, fences, keys, leases, wishes, history, journal, pruning) is written here a second time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec

from mainspring.clock import microseconds
from mainspring.model import lifecycle
from mainspring.model.attempt import Attempt
from mainspring.model.job import Job, JobState, NewJob, Wish
from mainspring.model.journal import LogEntry, LogLine, Progress, Reached
from mainspring.model.lifecycle import Asked, Settlement
from mainspring.model.session import NewSession
from mainspring.testing import SettableClock

DUE_LATER = (JobState.SCHEDULED, JobState.RETRYING)


class Tie(Exception):
    """Two jobs have the same place in the queue, so the promise leaves open which goes first."""


class ReferenceStore:
    def __init__(self, clock: SettableClock) -> None:
        self._clock = clock
        self.jobs: dict[UUID, Job] = {}
        self.ranks: dict[UUID, int] = {}
        self.past: dict[UUID, list[Attempt]] = {}
        self.leases: dict[UUID, tuple[NewSession, datetime]] = {}
        self.lines: dict[UUID, dict[tuple[int, int], LogEntry]] = {}

    def enqueue(self, jobs: Sequence[NewJob]) -> list[UUID]:
        standing = []
        for position, new in enumerate(jobs):
            holder = self._holder(new.key)
            standing.append(holder or new.id)
            if holder is None and new.id not in self.jobs:
                self._store(new, position)
        return standing

    def claim(self, session: UUID, queue: str, limit: int, tasks: Collection[str] | None) -> list[UUID]:
        if not self._alive(session):
            return []
        ready = [job for job in self.jobs.values() if job.state is JobState.READY and job.queue == queue]
        ready = [job for job in ready if not self._expired(job)]
        if tasks is not None:
            ready = [job for job in ready if job.task in tasks]
        ready.sort(key=lambda job: self.ranks[job.id])
        if len({self.ranks[job.id] for job in ready}) < len(ready):
            raise Tie
        for job in ready[:limit]:
            self._put(
                job,
                state=JobState.RUNNING,
                session=session,
                started_at=self._clock.now(),
                fence=job.fence + 1,
                attempt=job.attempt + 1,
            )
        return [job.id for job in ready[:limit]]

    def settle(self, settlements: Sequence[Settlement]) -> set[UUID]:
        return {settlement.job_id for settlement in settlements if self._apply(settlement)}

    def record(self, lines: Sequence[LogLine], progress: Sequence[Progress]) -> set[UUID]:
        for line in lines:
            if self._runs(line.job_id, line.fence):
                entry = LogEntry(line.fence, line.number, self._clock.now(), line.level, line.message)
                self.lines.setdefault(line.job_id, {}).setdefault((line.fence, line.number), entry)
        for report in progress:
            if self._runs(report.job_id, report.fence):
                reached = msgspec.json.encode(Reached(report.done, report.total, report.note)).decode()
                self._put(self.jobs[report.job_id], progress=reached)
        told = {(line.job_id, line.fence) for line in lines} | {(report.job_id, report.fence) for report in progress}
        return {job_id for job_id, fence in told if self._runs(job_id, fence)}

    def logs(self, job_id: UUID) -> list[LogEntry]:
        return [entry for _, entry in sorted(self.lines.get(job_id, {}).items())]

    def open_session(self, session: NewSession) -> None:
        self.leases[session.id] = (session, self._clock.now() + session.lease)

    def beat(self, session: UUID, holding: Mapping[UUID, int]) -> tuple[bool, dict[UUID, Wish]]:
        if not self._alive(session):
            return False, {}
        self.open_session(self.leases[session][0])
        return True, {job.id: job.wish for job in self._held(session) if job.wish is not None}

    def close_session(self, session: UUID) -> bool:
        if session not in self.leases or self._held(session):
            return False
        del self.leases[session]
        return True

    def cancel(self, ids: Collection[UUID], reason: str) -> None:
        self._control(ids, lambda job: lifecycle.cancel(job, reason))

    def pause(self, ids: Collection[UUID], reason: str) -> None:
        self._control(ids, lambda job: lifecycle.pause(job, reason))

    def resume(self, ids: Collection[UUID]) -> None:
        self._control(ids, lambda job: lifecycle.resume(job, self._clock.now()))

    def replay(self, ids: Collection[UUID], reason: str) -> None:
        for job_id in sorted(ids):
            job = self.jobs.get(job_id)
            settlement = None if job is None else lifecycle.replay(job, reason)
            if job is None or settlement is None or self._holder(job.key):
                continue
            if job.outcome is not None:
                self.past[job_id].append(self._last_attempt(job))
            # A finished job shows its last attempt's session; one that waits has none.
            self._put(job, finished_at=None, outcome=None, result=None, session=None, started_at=None, progress=None)
            self._put(self.jobs[job_id], expires_at=None)
            self._move(self.jobs[job_id], settlement)

    def promote(self) -> int:
        due = [job for job in self.jobs.values() if job.state in DUE_LATER and job.run_at <= self._clock.now()]
        for job in due:
            self._put(job, state=JobState.READY)
        return len(due)

    def expire(self) -> int:
        waiting = [job for job in self.jobs.values() if not job.state.final and job.state is not JobState.RUNNING]
        expired = [job for job in waiting if self._expired(job)]
        for job in expired:
            self._apply(lifecycle.expire(job))
        return len(expired)

    def reap(self) -> int:
        dead = [session for session in self.leases if not self._alive(session)]
        held = [job for session in dead for job in self._held(session)]
        for job in held:
            new, _ = self.leases[job.session]  # type: ignore[index]
            reason = f"worker {new.name} ({new.id}) did not renew its lease of {new.lease.total_seconds():g} s"
            self._apply(lifecycle.reap(job, reason))
        for session in dead:
            del self.leases[session]
        return len(held)

    def prune(self, age: timedelta) -> int:
        cut = (self._clock.now() - age).astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        for past in self.past.values():
            past[:] = [attempt for attempt in past if attempt.finished_at is None or attempt.finished_at >= cut]
        for lines in self.lines.values():
            for place in [place for place, line in lines.items() if line.at < cut]:
                del lines[place]
        gone = [job.id for job in self.jobs.values() if job.finished_at and job.finished_at < cut]
        for job_id in gone:
            del self.jobs[job_id]
        return len(gone)

    def attempts(self, job_id: UUID) -> list[Attempt]:
        job = self.jobs.get(job_id)
        last = [self._last_attempt(job)] if job and (job.outcome or job.state is JobState.RUNNING) else []
        return [*self.past[job_id], *last]

    def _store(self, new: NewJob, position: int) -> None:
        now = self._clock.now()
        due = new.run_at or now + new.delay
        state = JobState.READY if due <= now else JobState.SCHEDULED
        self.jobs[new.id] = Job(
            new.id, new.task, new.queue, new.payload, new.priority, state, due, now, new.key,
            0, 0, 0, None, None, None, None, None, None, None, None, None, new.schedule, new.tick,
            None if new.expires is None else due + new.expires,
        )  # fmt: skip
        self.ranks[new.id] = _rank(new.priority, due) + position
        self.past[new.id] = []

    def _control(self, ids: Collection[UUID], decide) -> None:  # type: ignore[no-untyped-def]
        for job_id in ids:
            answer = decide(self.jobs[job_id]) if job_id in self.jobs else None
            if isinstance(answer, Settlement):
                self._apply(answer)
            elif isinstance(answer, Asked):
                self._put(self.jobs[job_id], wish=answer.wish, reason=answer.reason)

    def _apply(self, settlement: Settlement) -> bool:
        job = self.jobs.get(settlement.job_id)
        if job is None or (job.state, job.fence) != (settlement.source, settlement.fence):
            return False
        if settlement.state.final:
            self._finish(job, settlement)
        else:
            if settlement.outcome is not None:
                self.past[job.id].append(self._last_attempt(job, settlement))
            self._move(job, settlement)
            self._grant(self.jobs[job.id], job)
        return True

    def _finish(self, job: Job, settlement: Settlement) -> None:
        self._put(
            job,
            state=settlement.state,
            attempt=settlement.attempt,
            losses=settlement.losses,
            outcome=settlement.outcome,
            result=settlement.result,
            error=_error(settlement) or job.error,
            reason=settlement.reason or job.reason,
            finished_at=self._clock.now(),
            wish=None,
        )

    def _move(self, job: Job, settlement: Settlement) -> None:
        due = job.run_at if settlement.delay is None else self._clock.now() + settlement.delay
        if settlement.delay is not None:
            self.ranks[job.id] = _rank(job.priority, due)
        self._put(
            job,
            state=settlement.state,
            attempt=settlement.attempt,
            losses=settlement.losses,
            error=_error(settlement) or job.error,
            reason=settlement.reason or (job.reason if settlement.outcome else None),
            run_at=due,
            session=None,
            started_at=None,
            wish=None,
        )

    def _grant(self, job: Job, before: Job) -> None:
        answer = None
        if before.wish is not None:
            decide = lifecycle.cancel if before.wish is Wish.CANCEL else lifecycle.pause
            answer = decide(job, before.reason)
        elif before.state is JobState.RUNNING:  # it may have paused for a wish that was taken back
            answer = lifecycle.resume(job, self._clock.now())
        if isinstance(answer, Settlement):
            self._apply(answer)

    def _last_attempt(self, job: Job, settlement: Settlement | None = None) -> Attempt:
        assert job.session is not None
        assert job.started_at is not None
        if settlement is not None:
            ended, outcome, error = self._clock.now(), settlement.outcome, _error(settlement)
        else:
            ended, outcome = job.finished_at, job.outcome  # type: ignore[assignment]
            error = job.error if outcome in ("failed", "timed_out", "lost") else None
        return Attempt(job.id, job.fence, job.attempt, job.session, job.started_at, ended, outcome, error)

    def _put(self, job: Job, **changes: object) -> None:
        self.jobs[job.id] = msgspec.structs.replace(job, **changes)

    def _holder(self, key: str | None) -> UUID | None:
        holders = [job.id for job in self.jobs.values() if key and job.key == key and not job.state.final]
        return holders[0] if holders else None

    def _held(self, session: UUID) -> list[Job]:
        return [job for job in self.jobs.values() if job.state is JobState.RUNNING and job.session == session]

    def _runs(self, job_id: UUID, fence: int) -> bool:
        job = self.jobs.get(job_id)
        return job is not None and job.state is JobState.RUNNING and job.fence == fence

    def _expired(self, job: Job) -> bool:
        return job.expires_at is not None and job.expires_at <= self._clock.now()

    def _alive(self, session: UUID) -> bool:
        return session in self.leases and self.leases[session][1] > self._clock.now()


def _rank(priority: int, due: datetime) -> int:
    return ((101 - priority) << 53) + microseconds(due)


def _error(settlement: Settlement) -> str | None:
    return None if settlement.failure is None else msgspec.json.encode(settlement.failure).decode()
