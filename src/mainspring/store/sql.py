"""SqlStore: the steps, composed over one database."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from mainspring.keys import Keyring
from mainspring.model.alert import Alert, NewAlert
from mainspring.model.attempt import Attempt
from mainspring.model.audit import Entry, Record, Verdict
from mainspring.model.breaker import BreakerStatus, Trip
from mainspring.model.change import Change
from mainspring.model.channel import Channel
from mainspring.model.dead import Count, Group, Letter, Meant
from mainspring.model.history import History
from mainspring.model.job import Job, JobState, NewJob
from mainspring.model.journal import FoundLine, LogEntry, LogFilter, LogLine, Progress
from mainspring.model.lifecycle import Settlement
from mainspring.model.limits import LimitStatus, Standing, Want
from mainspring.model.notice import Rule
from mainspring.model.queue import NewPause, Pausable, Pause, Queue
from mainspring.model.retention import Covers, Prunable, RetentionRule
from mainspring.model.schedule import NewSchedule, Origin, Schedule
from mainspring.model.secret import SealedSecret, Secret
from mainspring.model.session import Beat, NewSession, Session
from mainspring.model.step import Step
from mainspring.model.team import Quotas, Team
from mainspring.model.tick import TickRecord
from mainspring.model.token import NewToken, Token
from mainspring.model.workflow import NewWorkflow
from mainspring.store import (
    admit,
    alerts,
    audit,
    breakers,
    changes,
    claim,
    control,
    dead,
    enqueue,
    fire,
    inspect,
    journal,
    limits,
    migrate,
    notify,
    queues,
    results,
    retention,
    samples,
    schedules,
    secrets,
    sessions,
    settle,
    signals,
    steps,
    sweep,
    teams,
    tokens,
    transaction,
    turns,
    workflows,
)
from mainspring.store.database import Database, Listener, Migration, Probe
from mainspring.store.protocol import (
    OWN,
    Alerted,
    Expired,
    Fired,
    JobFilter,
    JobPage,
    Lags,
    LetterFilter,
    LogSearch,
    Overdue,
    Promoted,
    Released,
    Settled,
)
from mainspring.tally import Counts, Place


class SqlStore:
    """The store on any database that has a dialect. `protocol.Store` says what each call promises."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._ruled = notify.Ruled(db)

    def enqueue(self, jobs: Sequence[NewJob], conn: object = OWN, entries: Sequence[Entry] = ()) -> list[UUID]:
        return enqueue.enqueue(self._db, jobs, conn, entries=entries)

    def enqueue_workflow(self, new: NewWorkflow, conn: object = OWN) -> UUID:
        (stored,) = enqueue.enqueue(self._db, [new.job], conn, new.members)
        return stored

    def repeats(self, jobs: Sequence[NewJob]) -> set[UUID]:
        return enqueue.repeats(self._db, jobs)

    def claim(
        self,
        session: UUID,
        queue: str,
        limit: int,
        tasks: Collection[str] | None = None,
        ahead: timedelta = timedelta(0),
    ) -> list[Job]:
        return claim.claim(self._db, session, queue, limit, tasks, ahead)

    def reach(self, started: Sequence[Job]) -> None:
        turns.reach(self._db, started)

    def charge(self, job: Job) -> bool:
        return claim.charge(self._db, job)

    def admit(self, asking: Sequence[tuple[Job, Sequence[Want]]]) -> set[UUID]:
        return admit.admit(self._db, asking)

    def settle(self, settlements: Sequence[Settlement]) -> Settled:
        return settle.settle(self._db, settlements, self._ruled)

    def transaction(
        self, settlement: Callable[[], Settlement], lines: Sequence[LogLine] = ()
    ) -> AbstractContextManager[Any]:
        return transaction.transaction(self._db, settlement, lines, self._ruled)

    def record(self, lines: Sequence[LogLine], progress: Sequence[Progress]) -> set[UUID]:
        return journal.record(self._db, lines, progress)

    def steps(self, job_id: UUID) -> list[Step]:
        return steps.steps(self._db, job_id)

    def record_step(self, job_id: UUID, fence: int, name: str, result: str) -> None:
        steps.record(self._db, job_id, fence, name, result)

    def step_transaction(
        self, job_id: UUID, fence: int, step: tuple[str, str], lines: Sequence[LogLine] = ()
    ) -> AbstractContextManager[Any]:
        return transaction.step_transaction(self._db, job_id, fence, step, lines)

    def begin_sleep(self, job_id: UUID, fence: int, name: str, delay: timedelta) -> timedelta:
        return steps.begin_sleep(self._db, job_id, fence, name, delay)

    def signal(self, job_id: UUID, name: str, value: str, signal_id: UUID) -> None:
        signals.send(self._db, job_id, name, value, signal_id)

    def take_signal(
        self, job_id: UUID, fence: int, name: str, signal: str, timeout: timedelta | None
    ) -> str | timedelta:
        return signals.take(self._db, job_id, fence, name, signal, timeout)

    def open_session(self, session: NewSession) -> None:
        sessions.open_session(self._db, session)

    def beat(self, session: UUID, holding: Mapping[UUID, int]) -> Beat:
        return sessions.beat(self._db, session, holding)

    def close_session(self, session: UUID) -> bool:
        return sessions.close_session(self._db, session)

    def sessions(self) -> list[Session]:
        return sessions.sessions(self._db)

    def cancel(self, ids: Collection[UUID], reason: str | None = None) -> dict[UUID, JobState]:
        return control.cancel(self._db, ids, reason)

    def pause(self, ids: Collection[UUID], reason: str | None = None) -> dict[UUID, JobState]:
        return control.pause(self._db, ids, reason)

    def resume(self, ids: Collection[UUID]) -> dict[UUID, JobState]:
        return control.resume(self._db, ids)

    def replay(self, ids: Collection[UUID], reason: str | None = None) -> dict[UUID, JobState]:
        return control.replay(self._db, ids, reason)

    def dead_groups(self, match: LetterFilter | None = None, limit: int = 50) -> list[Group]:
        return dead.groups(self._db, match or LetterFilter(), limit)

    def dead_fingerprints(self, prefix: str, limit: int = 10, team: str | None = None) -> list[str]:
        return dead.fingerprints(self._db, prefix, limit, team)

    def dead_count(self, match: LetterFilter) -> int:
        return dead.count(self._db, match)

    def dead_meant(self, match: LetterFilter) -> Meant:
        return dead.meant(self._db, match)

    def dead_among(self, most: int, team: str | None = None) -> Count:
        return dead.count_among(self._db, most, team)

    def dead_letters(self, match: LetterFilter, after: UUID | None = None, limit: int = 5_000) -> list[Letter]:
        return dead.letters(self._db, match, after, limit)

    def dead_page(self, match: LetterFilter, before: UUID | None = None, limit: int = 50) -> list[Job]:
        return dead.page(self._db, match, before, limit)

    def replay_letters(
        self, letters: Collection[Letter], reason: str | None = None, rewrite: Callable[[Job], str] | None = None
    ) -> set[UUID]:
        return dead.replay(self._db, letters, reason, rewrite)

    def discard_letters(self, letters: Collection[Letter], reason: str | None = None) -> set[UUID]:
        return dead.discard(self._db, letters, reason)

    def promote(self, limit: int = 1_000, ahead: timedelta = timedelta(0)) -> Promoted:
        return sweep.promote(self._db, limit, ahead)

    def expire(self, limit: int = 1_000) -> Expired:
        return sweep.expire(self._db, limit)

    def rerank(self) -> int:
        return queues.rerank(self._db)

    def fire(self, node: str, new_ids: Callable[[int], list[UUID]], limit: int = 1_000) -> Fired:
        return fire.fire(self._db, node, new_ids, limit)

    def find_overdue(self) -> list[Overdue]:
        return fire.find_overdue(self._db)

    def alert(self, node: str, limit: int = 100) -> Alerted:
        return alerts.alert(self._db, node, limit)

    def sample(self) -> timedelta:
        return samples.sample(self._db)

    def release(self, limit: int = 500) -> Released:
        return sweep.release(self._db, limit)

    def reap(self) -> int:
        return sweep.reap(self._db)

    def prune(self, age: timedelta, tell: Callable[[int], None] | None = None) -> int:
        return sweep.prune(self._db, age, tell)

    def prunable(self, age: timedelta) -> list[Prunable]:
        return retention.prunable(self._db, age)

    def put_schedules(self, given: Sequence[NewSchedule], node: str = "") -> None:
        schedules.put(self._db, given, node)

    def schedules(
        self, after: str = "", limit: int = 1_000, origin: Origin | None = None, team: str | None = None
    ) -> list[Schedule]:
        return schedules.page(self._db, after, limit, origin, team)

    def coming_schedules(self, limit: int = 10, team: str | None = None) -> list[Schedule]:
        return schedules.coming(self._db, limit, team)

    def get_schedules(self, ids: Collection[str]) -> dict[str, Schedule]:
        return schedules.get(self._db, ids)

    def pause_schedules(self, ids: Collection[str], by: str = "", reason: str | None = None) -> set[str]:
        return schedules.pause(self._db, ids, by, reason)

    def resume_schedules(self, ids: Collection[str], node: str) -> set[str]:
        return schedules.resume(self._db, ids, node)

    def remove_schedules(self, ids: Collection[str], node: str = "") -> set[str]:
        return schedules.remove(self._db, ids, node)

    def trigger_schedule(self, schedule_id: str, job_id: UUID, node: str) -> bool:
        return fire.trigger(self._db, schedule_id, job_id, node)

    def backfill(self, schedule_id: str, ticks: Mapping[datetime, UUID], node: str) -> list[UUID]:
        return fire.backfill(self._db, schedule_id, ticks, node)

    def ticks(self, schedule_id: str, before: datetime | None = None, limit: int = 50) -> list[TickRecord]:
        return schedules.ticks(self._db, schedule_id, before, limit)

    def pause_claims(self, wanted: NewPause) -> Pause:
        return queues.pause(self._db, wanted)

    def resume_claims(self, kind: Pausable, name: str) -> bool:
        return queues.resume(self._db, kind, name)

    def pauses(self) -> list[Pause]:
        return queues.pauses(self._db)

    def set_ageing(self, name: str, ageing: timedelta | None) -> None:
        queues.set_ageing(self._db, name, ageing)

    def queues(self, team: str | None = None, *, quick: bool = False) -> list[Queue]:
        return queues.queues(self._db, team, quick)

    def give_queue(self, name: str, team: str | None) -> None:
        queues.give(self._db, name, team)

    def queue_owners(self) -> dict[str, str]:
        return queues.owners(self._db)

    def limits(self, name: str | None = None) -> list[LimitStatus]:
        return limits.limits(self._db, name)

    def release_limit(self, name: str) -> int:
        return limits.release(self._db, name)

    def trip_breaker(self, wanted: Trip) -> BreakerStatus:
        return breakers.trip(self._db, wanted)

    def reset_breaker(self, name: str, *, all_at_once: bool = False) -> bool:
        return breakers.reset(self._db, name, all_at_once=all_at_once)

    def breakers(self, name: str | None = None) -> list[BreakerStatus]:
        return breakers.breakers(self._db, name)

    def create_token(self, new: NewToken, lasting: timedelta | None = None) -> Token:
        return tokens.create(self._db, new, lasting)

    def verify_token(self, token_id: str, digest: str) -> Token | None:
        return tokens.verify(self._db, token_id, digest)

    def revoke_token(self, token_id: str) -> Token | None:
        return tokens.revoke(self._db, token_id)

    def get_token(self, token_id: str) -> Token | None:
        return tokens.get(self._db, token_id)

    def tokens(self) -> list[Token]:
        return tokens.tokens(self._db)

    def set_team(self, name: str, quotas: Quotas) -> Team:
        return teams.put(self._db, name, quotas)

    def teams(self, name: str | None = None) -> list[Team]:
        return teams.teams(self._db, name)

    def remove_team(self, name: str) -> bool:
        return teams.remove(self._db, name)

    def admit_team(self, name: str, jobs: int = 0, schedules: int = 0) -> None:
        teams.admit(self._db, name, jobs, schedules)

    def record_audit(self, entries: Sequence[Entry]) -> None:
        audit.record(self._db, entries)

    def audit(self, team: str | None = None, before: int | None = None, limit: int = 50) -> list[Record]:
        return audit.page(self._db, team, before, limit)

    def verify_audit(self) -> Verdict:
        return audit.verify(self._db)

    def add_counts(self, counts: Mapping[Place, Counts]) -> None:
        samples.add(self._db, counts)

    def history(self, over: str, team: str | None = None, queue: str | None = None) -> History:
        return samples.history(self._db, over, team, queue)

    def put_alert(self, new: NewAlert) -> None:
        alerts.put(self._db, new)

    def alerts(self, alert_id: str | None = None, scope: str | None = None) -> list[Alert]:
        return alerts.alerts(self._db, alert_id, scope)

    def remove_alert(self, alert_id: str) -> bool:
        return alerts.remove(self._db, alert_id)

    def set_retention(self, rule: RetentionRule) -> None:
        retention.set_rule(self._db, rule)

    def retention(self) -> list[RetentionRule]:
        return retention.rules(self._db)

    def remove_retention(self, covers: Covers) -> bool:
        return retention.remove(self._db, covers)

    def put_secret(self, secret: SealedSecret, by: str) -> None:
        secrets.put(self._db, secret, by)

    def secrets(self, team: str | None = None) -> list[Secret]:
        return secrets.secrets(self._db, team)

    def sealed_secrets(self, names: Collection[tuple[str, str]]) -> list[SealedSecret]:
        return secrets.sealed(self._db, names)

    def outdated_secrets(self, key_id: str, team: str | None = None) -> list[SealedSecret]:
        return secrets.outdated(self._db, key_id, team)

    def reseal_secret(self, before: SealedSecret, sealed: str) -> None:
        secrets.reseal(self._db, before, sealed)

    def remove_secret(self, team: str, name: str) -> bool:
        return secrets.remove(self._db, team, name)

    def put_rule(self, team: str, rule_id: str, channel: Channel) -> Rule:
        return notify.put_rule(self._db, team, rule_id, channel, self._ruled)

    def rules(self, team: str | None = None, rule_id: str | None = None) -> list[Rule]:
        return notify.rules(self._db, team, rule_id)

    def remove_rule(self, team: str, rule_id: str) -> bool:
        return notify.remove_rule(self._db, team, rule_id)

    def get(self, ids: Collection[UUID]) -> dict[UUID, Job]:
        return inspect.get(self._db, ids)

    def page(self, match: JobFilter | None = None, *, before: UUID | None = None, limit: int = 50) -> list[Job]:
        return inspect.page(self._db, match or JobFilter(), before, limit)

    def look(self, match: JobFilter | None = None, *, before: UUID | None = None, limit: int = 50) -> JobPage:
        return inspect.look(self._db, match or JobFilter(), before, limit)

    def changes(self, since: datetime, until: datetime | None = None, limit: int = 1_000) -> list[Change]:
        return changes.changes(self._db, since, until, limit)

    def members(self, workflow: UUID, after: UUID | None = None, limit: int = 1_000) -> list[Job]:
        return workflows.members(self._db, workflow, after, limit)

    def unfinished_members(self, workflow: UUID, limit: int) -> list[Job]:
        return workflows.unfinished_members(self._db, workflow, limit)

    def member_counts(self, given: Collection[UUID]) -> dict[UUID, dict[JobState, int]]:
        return workflows.member_counts(self._db, given)

    def workflows(self, before: UUID | None = None, limit: int = 50, team: str | None = None) -> list[Job]:
        return workflows.page(self._db, before, limit, team)

    def results(self, ids: Collection[UUID], keys: Keyring | None = None) -> dict[UUID, str]:
        return results.results(self._db, keys or Keyring(None), ids)

    def now(self) -> datetime:
        return inspect.now(self._db)

    def jobs_ahead(self, job_id: UUID, most: int, tasks: Collection[str] | None = None) -> int:
        return inspect.jobs_ahead(self._db, job_id, most, tasks)

    def waiting_ahead(self, job_id: UUID, most: int) -> int:
        return inspect.waiting_ahead(self._db, job_id, most)

    def pace(self, queue: str) -> timedelta | None:
        return inspect.pace(self._db, queue)

    def limit(self, key: str) -> Standing | None:
        return inspect.limit(self._db, key)

    def slot_holders(self, key: str, limit: int = 20) -> list[UUID]:
        return inspect.slot_holders(self._db, key, limit)

    def lags(self) -> Lags:
        return inspect.lags(self._db)

    def counts(self) -> dict[str, dict[JobState, int]]:
        return inspect.counts(self._db)

    def attempts(self, job_id: UUID) -> list[Attempt]:
        return inspect.attempts(self._db, job_id)

    def logs(
        self,
        job_id: UUID,
        after: tuple[int, int] = (0, 0),
        limit: int = 1_000,
        match: LogFilter | None = None,
    ) -> list[LogEntry]:
        return journal.logs(self._db, job_id, after, limit, match or LogFilter())

    def find_logs(self, search: LogSearch, limit: int = 100) -> list[FoundLine]:
        return journal.find_logs(self._db, search, limit)

    def listen(self, topics: Collection[str]) -> Listener:
        return self._db.listen(topics)

    def migrate(self) -> list[Migration]:
        return migrate.migrate(self._db)

    def version(self) -> int:
        return self._db.version()

    def check(self) -> None:
        migrate.check(self._db)

    def probe(self) -> Probe:
        return self._db.probe()

    def close(self) -> None:
        self._db.close()
