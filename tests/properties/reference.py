"""A reference store: what the real ones promise, in plain Python over a dict, one caller at a time.

What becomes of a job is asked of the lifecycle, as in the real stores; everything else (due times, places in the
queue, fences, keys, leases, wishes, parents, history, journal, pruning) is written here a second time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec

from mainspring.clock import microseconds
from mainspring.errors import KeyTaken
from mainspring.model import lifecycle
from mainspring.model.attempt import Attempt
from mainspring.model.ids import uuid7
from mainspring.model.job import Job, JobState, NewJob, Wish
from mainspring.model.journal import LogEntry, LogLine, Progress, Reached
from mainspring.model.lifecycle import Asked, Settlement
from mainspring.model.links import Edge, IfFailed
from mainspring.model.session import NewSession
from mainspring.testing import SettableClock

BLOCKED = JobState.BLOCKED
DUE_LATER = (JobState.SCHEDULED, JobState.RETRYING)

Outlook = tuple[dict[UUID, int], dict[tuple[UUID, UUID], IfFailed], dict[UUID, tuple[UUID, JobState | None]]]
"""By the ids of children, for how many parents they wait; by which edges; and which won't run, and why."""


class Tie(Exception):
    """Two jobs have the same place in the queue, so the promise leaves open which goes first."""


class ReferenceStore:
    def __init__(self, clock: SettableClock) -> None:
        self._clock = clock
        self.jobs: dict[UUID, Job] = {}
        self.ranks: dict[UUID, int] = {}
        self.past: dict[UUID, list[Attempt]] = {}
        self.names: dict[UUID, str] = {}
        self.leases: dict[UUID, tuple[NewSession, datetime]] = {}
        self.lines: dict[UUID, dict[tuple[int, int], LogEntry]] = {}
        self.edges: dict[tuple[UUID, UUID], IfFailed] = {}
        self.untold: set[UUID] = set()

    def enqueue(self, jobs: Sequence[NewJob]) -> list[UUID]:
        """Store what has no key that is taken; raise KeyTaken if a child's parent, in the same call, has one."""
        taken = {job.key: job.id for job in self.jobs.values() if job.key and not job.state.final}
        standing = {new.id: taken.setdefault(new.key, new.id) if new.key else new.id for new in jobs}
        parents = {edge.parent for new in jobs for edge in new.parents}
        stored = [new for new in jobs if standing[new.id] == new.id and new.id not in self.jobs]
        for new in stored:
            for edge in new.parents:
                if standing.get(edge.parent, edge.parent) != edge.parent:
                    raise KeyTaken(new.task, new.key)
        waiting, edges, broken = self._look({new.id: new.parents for new in jobs}, {new.id for new in jobs})
        for position, new in enumerate(jobs):
            if new in stored:
                self._store(new, position, waiting[new.id], awaited=new.id in parents)
        ids = {new.id for new in stored}
        self.edges |= {edge: policy for edge, policy in edges.items() if edge[1] in ids}
        self._disown({child: why for child, why in broken.items() if child in ids})
        return [standing[new.id] for new in jobs]

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
        return self._apply_all(settlements)

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
        self.names[session.id] = session.name

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
        """Let dead jobs live again, unless a key or a parent that has ended badly is in the way."""
        chosen: dict[UUID, Job] = {}
        keys: set[str | None] = set()
        for job_id in sorted(ids):
            job = self.jobs.get(job_id)
            if job is None or lifecycle.replay(job) is None or self._holder(job.key) or job.key in keys:
                continue
            chosen[job_id] = job
            keys |= {job.key} - {None}
        while True:
            waiting, edges, broken = self._look({job.id: job.beginnings.parents for job in chosen.values()}, chosen)
            if not broken:
                break
            chosen = {job_id: job for job_id, job in chosen.items() if job_id not in broken}
        self.untold -= chosen.keys()
        self.edges = {edge: policy for edge, policy in self.edges.items() if edge[1] not in chosen} | edges
        for job in chosen.values():
            self._revive(job, reason, waiting[job.id])
        self._follow_to_the_end()

    def _revive(self, job: Job, reason: str, pending: int) -> None:
        settlement = lifecycle.replay(job, reason, pending)
        assert settlement is not None
        if job.outcome is not None:
            self.past[job.id].append(self._last_attempt(job))
        # A finished job shows its last attempt's session; one that waits has none.
        self._put(job, finished_at=None, outcome=None, result=None, session=None, started_at=None, progress=None)
        self._put(self.jobs[job.id], expires_at=None, awaited=any(parent == job.id for parent, _ in self.edges))
        self._move(self.jobs[job.id], settlement)

    def release(self) -> None:
        """Tell of the ends of jobs that did not run, of which nobody was told yet."""
        told, self.untold = self.untold, set()
        self._tell([self.jobs[job_id] for job_id in told if job_id in self.jobs])

    def promote(self) -> int:
        waiting = [job for job in self.jobs.values() if job.state in DUE_LATER or (job.signal and job.state is BLOCKED)]
        due = [job for job in waiting if job.run_at <= self._clock.now()]
        for job in due:
            self._put(job, state=JobState.READY, signal=None)
        return len(due)

    def expire(self) -> int:
        waiting = [job for job in self.jobs.values() if not job.state.final and job.state is not JobState.RUNNING]
        expired = [job for job in waiting if self._expired(job)]
        self._apply_all([lifecycle.expire(job) for job in expired])
        return len(expired)

    def reap(self) -> int:
        dead = sorted((until, session) for session, (_, until) in self.leases.items() if not self._alive(session))
        total = 0
        for _, session in dead:
            new, _ = self.leases[session]
            reason = f"worker {new.name} ({new.id}) did not renew its lease of {new.lease.total_seconds():g} s"
            total += len(self._apply_all([lifecycle.reap(job, reason) for job in self._held(session)]))
            del self.leases[session]
        return total

    def prune(self, age: timedelta) -> int:
        now = self._clock.now()
        cut = (now - age).astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        for past in self.past.values():
            past[:] = [attempt for attempt in past if attempt.finished_at is None or attempt.finished_at >= cut]
        for lines in self.lines.values():
            for place in [place for place, line in lines.items() if line.at < cut]:
                del lines[place]
        edge = cut if age >= timedelta(days=1) else now - age  # whole days go by the day, less to the moment
        gone = [job.id for job in self.jobs.values() if job.finished_at and job.finished_at < edge]
        for job_id in gone:
            del self.jobs[job_id]
            self.past[job_id].clear()
            self.lines.pop(job_id, None)
        self._prune_edges(age)
        return len(gone)

    def _prune_edges(self, age: timedelta) -> None:
        """Remove edges to children that have ended, and end the children of parents that are not there any more."""
        before = uuid7(microseconds(self._clock.now() - age) // 1_000, 0)
        old = [edge for edge in self.edges if edge[0] < before]
        for parent, child in old:
            if self._ended(child):
                del self.edges[parent, child]
        orphans = {child for parent, child in self.edges if parent < before and parent not in self.jobs}
        _, _, broken = self._look({child: self.jobs[child].beginnings.parents for child in orphans})
        self._disown(broken)

    def attempts(self, job_id: UUID) -> list[Attempt]:
        job = self.jobs.get(job_id)
        last = [self._last_attempt(job)] if job and (job.outcome or job.state is JobState.RUNNING) else []
        return [*self.past[job_id], *last]

    # --- parents and children

    def _look(self, children: Mapping[UUID, Sequence[Edge]], together: Collection[UUID] = ()) -> Outlook:
        """Return for how many parents *children* wait, by which edges, and which won't run; mark who is awaited."""
        waiting = dict.fromkeys(children, 0)
        edges: dict[tuple[UUID, UUID], IfFailed] = {}
        broken: dict[UUID, tuple[UUID, JobState | None]] = {}
        for child, parents in children.items():
            for edge in parents:
                job = self.jobs.get(edge.parent)
                if edge.parent not in together and job is not None and not job.state.final:
                    self._put(job, awaited=True)
                elif edge.parent not in together and (job is None or job.state is not JobState.SUCCEEDED):
                    if job is None or edge.if_failed is IfFailed.CANCEL:
                        broken.setdefault(child, (edge.parent, None if job is None else job.state))
                    if job is None or edge.if_failed is not IfFailed.WAIT:
                        continue
                elif edge.parent not in together:
                    continue
                waiting[child] += 1
                edges[edge.parent, child] = edge.if_failed
        return {child: waiting[child] or int(child in broken) for child in children}, edges, broken

    def _tell(self, ended: Collection[Job]) -> None:
        """Tell the children of jobs that have *ended*: some are set free, and some are cancelled."""
        broken: dict[UUID, tuple[UUID, JobState | None]] = {}
        met: set[UUID] = set()
        for parent in sorted(ended, key=lambda job: job.id):
            success = parent.state is JobState.SUCCEEDED
            for edge, policy in [*self.edges.items()]:
                if edge[0] != parent.id or (policy is IfFailed.WAIT and not success):
                    continue
                del self.edges[edge]
                child = self.jobs.get(edge[1])
                if not success and policy is IfFailed.CANCEL:
                    broken.setdefault(edge[1], (parent.id, parent.state))
                elif child is not None and not child.state.final:
                    self._put(child, pending=max(0, (child.pending or 0) - 1))
                    met.add(child.id)
        for child_id in met - broken.keys():
            settlement = lifecycle.release(self.jobs[child_id], self._clock.now())
            if settlement is not None:
                self._apply(settlement)
        self._disown(broken)

    def _disown(self, broken: Mapping[UUID, tuple[UUID, JobState | None]]) -> None:
        for child, (parent, state) in broken.items():
            if not self._ended(child) and self.jobs[child].state in (BLOCKED, JobState.PAUSED):
                self._apply(lifecycle.disown(self.jobs[child], parent, state))

    def _ended(self, job_id: UUID) -> bool:
        return job_id not in self.jobs or self.jobs[job_id].state.final

    def _follow_to_the_end(self) -> None:
        while self.untold:
            self.release()

    # --- jobs

    def _store(self, new: NewJob, position: int, pending: int, *, awaited: bool) -> None:
        now = self._clock.now()
        due = new.run_at or now + new.delay
        state = BLOCKED if pending else JobState.READY if due <= now else JobState.SCHEDULED
        self.jobs[new.id] = Job(
            new.id, new.task, new.queue, new.payload, new.priority, state, due, now, new.key,
            0, 0, 0, None, None, None, None, None, None, None, None, None, new.schedule, new.tick,
            None if new.expires is None or pending else due + new.expires,
            links=new.links, pending=pending if new.parents or awaited else None, awaited=awaited,
        )  # fmt: skip
        self.ranks[new.id] = _rank(new.priority, due) + position
        self.past[new.id] = []

    def _control(self, ids: Collection[UUID], decide) -> None:  # type: ignore[no-untyped-def]
        before = set(self.untold)
        for job_id in ids:
            answer = decide(self.jobs[job_id]) if job_id in self.jobs else None
            if isinstance(answer, Settlement):
                self._apply(answer)
            elif isinstance(answer, Asked):
                self._put(self.jobs[job_id], wish=answer.wish, reason=answer.reason)
        if self.untold > before:
            self._follow_to_the_end()

    def _apply_all(self, settlements: Sequence[Settlement]) -> set[UUID]:
        """Apply *settlements*, and tell together of those that ended while they ran; return which held."""
        held = [settlement for settlement in settlements if self._apply(settlement)]
        self._tell([self.jobs[one.job_id] for one in held if one.state.final and one.source is JobState.RUNNING])
        return {settlement.job_id for settlement in held}

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
        if job.awaited and job.state is not JobState.RUNNING:
            self.untold.add(job.id)
        self._put(
            job,
            state=settlement.state,
            attempt=settlement.attempt,
            losses=settlement.losses,
            outcome=settlement.outcome,
            result=settlement.result,
            error=_error(settlement) or (None if settlement.forgets else job.error),
            reason=settlement.reason or job.reason,
            finished_at=self._clock.now(),
            wish=None,
            pending=None,
            awaited=False,
            signal=None,
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
            error=_error(settlement) or (None if settlement.forgets else job.error),
            reason=settlement.reason or (job.reason if settlement.outcome else None),
            run_at=due,
            session=None,
            started_at=None,
            wish=None,
            pending=job.pending if settlement.pending is None else settlement.pending,
            signal=settlement.signal,
            expires_at=self._expiry(job, settlement),
        )

    def _expiry(self, job: Job, settlement: Settlement) -> datetime | None:
        if settlement.started:
            return None
        return job.expires_at if settlement.expires is None else self._clock.now() + settlement.expires

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
        worker = self.names[job.session]
        return Attempt(job.id, job.fence, job.attempt, job.session, job.started_at, ended, outcome, error, None, worker)

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
