"""Client: everything that can be done with jobs from outside a worker."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TypedDict
from uuid import UUID
from weakref import WeakSet

from msgspec.structs import replace

from mainspring.clock import Clock, SystemClock, microseconds, random_bits
from mainspring.errors import InvalidValue, JobNotFound, NotAllowed, SecretNotFound, check_known, did_you_mean
from mainspring.keys import Keyring
from mainspring.model.audit import Entry
from mainspring.model.duration import Duration, duration
from mainspring.model.ids import IdSource
from mainspring.model.job import Job, JobState, NewJob
from mainspring.model.journal import FoundLine
from mainspring.model.sealed import secret_context
from mainspring.model.session import Session
from mainspring.model.team import DEFAULT_TEAM, check_team, full_name, local_name, stored_team
from mainspring.model.text import shortened
from mainspring.model.workflow import NewWorkflow, decode_plan
from mainspring.store import Store, open_store
from mainspring.store.open import keyring
from mainspring.store.protocol import OWN, JobFilter, JobPage, LogSearch
from mainspring.tally import Tally

_LARGEST_PAGE = 1_000_000
_MOST_LINES = 10_000
_OWNERS_LAST = 1.0
"""Seconds for which it is taken for granted whose a queue is, so that not every enqueue has to ask."""


class Match(TypedDict, total=False):
    """Which jobs are meant. A time is an instant, or how long ago that was."""

    state: JobState | str | None
    queue: str | None
    task: str | None
    key: str | None
    since: Duration | datetime | None  # made then or later
    until: Duration | datetime | None  # made before
    finished_since: Duration | datetime | None
    finished_until: Duration | datetime | None
    error: str | None  # what the type or the message of the last failure contains, in ASCII letters of either case


class Client:
    """A lazily opened store, with ids and handles for its jobs. Safe from any thread, and across forks.

    What it makes is the default team's, and it sees what is anybody's. `within` a team it is bound to that.
    """

    scope: str | None = None
    """The name of the team to which it is bound, if it is to any."""

    def __init__(self, url: str, *, clock: Clock | None = None) -> None:
        self.url = url
        self._teller = clock
        self._clock = SystemClock()
        self._lock = threading.Lock()
        self._store: Store | None = None
        self._keys: Keyring | None = None
        self._pid = os.getpid()
        self._lent = 0
        self._owners: tuple[float, Mapping[str, str]] | None = None
        self.tally = Tally()
        self._ids = IdSource(lambda: microseconds(self._clock.now()) // 1000, random_bits)
        _clients.add(self)

    @property
    def store(self) -> Store:
        """The store, opened by whoever asks first; a forked child gets one of its own."""
        with self._lock:
            if self._store is None or self._pid != os.getpid():
                self._pid = os.getpid()
                self._store = open_store(self.url, clock=self._teller)
            return self._store

    @property
    def keys(self) -> Keyring:
        """The encryption keys of the installation; none is read or made before it is needed."""
        with self._lock:
            if self._keys is None:
                self._keys = keyring(self.url)
            return self._keys

    @property
    def home(self) -> Client:
        """The client whose store this is."""
        return self

    @property
    def given_clock(self) -> Clock | None:
        """The clock that takes the place of the database's own, if there is one."""
        return self._teller

    @property
    def clock(self) -> Clock:
        """The clock that takes the place of the database's own, or else this machine's."""
        return self._teller or self._clock

    @contextmanager
    def redirect(self, url: str, clock: Clock | None = None) -> Iterator[None]:
        """Use another database while the block lasts, in all threads and for all handles of this client; for tests."""
        with self._lock:
            before = self.url, self._teller, self._store, self._pid, self._keys
            self.url, self._teller, self._store, self._keys, self._owners = url, clock, None, None, None
        try:
            yield
        finally:
            with self._lock:
                opened = self._store
                self.url, self._teller, self._store, self._pid, self._keys = before
                self._owners = None
            if opened is not None:
                opened.close()

    def check(self) -> None:
        """Raise a StoreError if the database does not answer, or has other tables than this version needs."""
        self.store.check()

    def new_ids(self, count: int, after: UUID | None = None) -> list[UUID]:
        """Return *count* new ids, each larger than the one before it, and than *after*."""
        with self._lock:
            return self._ids.many(count, after)

    def within(self, team: str) -> Client:
        """Return this client bound to *team*: what it makes is the team's, and it sees nothing that is another's."""
        return TeamClient(self, team)

    @property
    def team(self) -> str | None:
        """The team whose everything is that it makes, as that is stored."""
        return stored_team(self.scope)

    def sees(self, team: str | None) -> bool:
        """Return whether what is of *team*, as that is stored, is there for it."""
        return self.scope is None or team == self.team

    @property
    def of_fleet(self) -> bool:
        """Whether what holds for the whole fleet is there for it: limits, breakers, workers, paused tasks."""
        return self.scope in (None, DEFAULT_TEAM)

    def check_of_fleet(self, deed: str) -> None:
        """Refuse *deed*, such as `pause a task`, to a team that would do it to all others."""
        if not self.of_fleet:
            raise NotAllowed(self.scope, deed)

    def owners(self) -> Mapping[str, str]:
        """Return whose those queues are that are a team's, as it was a moment ago at most."""
        now = self._clock.steady()
        known = self._owners
        if known is None or not now - _OWNERS_LAST < known[0] <= now:
            known = self._owners = (now, self.store.queue_owners())
        return known[1]

    def check_queues(self, names: Iterable[str]) -> None:
        """Refuse the names of queues that take no jobs of whoever it is bound to."""

    def forget_owners(self) -> None:
        """Ask anew whose queues are, because that was changed here."""
        self._owners = None

    def shown(self, job: Job) -> Job:
        """Return *job* with what it names called what whoever it is bound to calls it."""
        return job

    def full_name(self, name: str) -> str:
        """Return what is called *name* here as it is called among those of all teams."""
        return name

    def secret(self, team: str, name: str) -> str:
        """Return the value of a team's secret, for what is sent in its name; or raise why it can't be had."""
        for kept in self.store.sealed_secrets([(team, name)]):
            return self.keys.unseal(kept.sealed, secret_context(team, name), kept.described)
        raise SecretNotFound(name, team)

    def enqueue(self, jobs: Sequence[NewJob], conn: object = OWN, entries: Sequence[Entry] = ()) -> list[UUID]:
        """Store *jobs*, all or none, and return for each the id of the job that stands for it.

        *entries* are put into the audit log together with them.
        """
        return self.store.enqueue(jobs, conn, entries)

    def repeats(self, jobs: Sequence[NewJob]) -> set[UUID]:
        """Return the ids of those *jobs* for which another would stand by their keys, if they were enqueued now."""
        return self.store.repeats(jobs)

    def enqueue_workflow(self, new: NewWorkflow, conn: object = OWN) -> UUID:
        """Store a workflow and its members, all or none, and return the id of the workflow that stands for it."""
        return self.store.enqueue_workflow(new, conn)

    def get(self, job_id: UUID) -> Job:
        """Return the job as it is now. One that is another team's is as good as none."""
        found = self.store.get([job_id]).get(job_id)
        if found is None or not self.sees(found.team):
            raise JobNotFound(job_id)
        return self.shown(found)

    def find(self, ids: Collection[UUID]) -> dict[UUID, Job]:
        """Return those of the jobs with these ids that are there for it, as they are now."""
        found = self.store.get(ids) if ids else {}
        return {job_id: self.shown(job) for job_id, job in found.items() if self.sees(job.team)}

    def match(self, wanted: Match) -> JobFilter:
        """Return the filter that *wanted* asks for, checked."""
        check_known(wanted, Match, "no filter")
        given: dict[str, Any] = dict(wanted)
        for name in ("since", "until", "finished_since", "finished_until"):
            if given.get(name) is not None and not isinstance(given[name], datetime):
                given[name] = self.store.now() - duration(given[name], name)
        if given.get("state") is not None:
            given["state"] = _state(given["state"])
        return JobFilter(**given)

    def page(self, match: JobFilter, before: UUID | None, limit: int) -> list[Job]:
        """Return jobs, newest first, however many have to be looked through for them."""
        check_limit(limit)
        return [self.shown(job) for job in self.store.page(self._own(match), before=before, limit=limit)]

    def look(self, match: JobFilter, before: UUID | None, limit: int) -> JobPage:
        """Return jobs likewise from among so many as can be looked at in no time, and where to go on."""
        check_limit(limit)
        seen = self.store.look(self._own(match), before=before, limit=limit)
        return JobPage([self.shown(job) for job in seen.jobs], seen.before)

    def _own(self, match: JobFilter) -> JobFilter:
        """Return *match* for what is there for it."""
        key = None if match.key is None else self.full_name(match.key)
        return replace(match, team=self.scope or match.team, key=key)

    def workflows(self, before: UUID | None = None, limit: int = 50) -> list[Job]:
        """Return workflows that are members of none, newest first; pass the last one's id as *before* for more."""
        check_limit(limit)
        return [self.shown(job) for job in self.store.workflows(before, limit, self.scope)]

    def sessions(self) -> list[Session]:
        """Return the workers of the fleet; a team other than the default one sees none."""
        return self.store.sessions() if self.of_fleet else []

    def find_logs(self, search: LogSearch, limit: int) -> list[FoundLine]:
        """Return lines of all jobs that it can see, newest first."""
        if isinstance(limit, bool) or not isinstance(limit, int) or not 0 <= limit <= _MOST_LINES:
            raise InvalidValue(
                f"expected limit to be a whole number from 0 to {_MOST_LINES:,}, got: {shortened(limit)}"
            )
        return self.store.find_logs(replace(search, team=self.scope or search.team), limit)

    @contextmanager
    def lend(self) -> Iterator[Store]:
        """Lend the store to a worker of this process while the block lasts; until then it can't be closed."""
        store = self.store
        with self._lock:
            self._lent += 1
        try:
            yield store
        finally:
            with self._lock:
                self._lent -= 1

    def close(self) -> None:
        with self._lock:
            if self._lent:
                raise InvalidValue("a worker of this app works with its database; let it end before you close the app")
            if self._store is not None:
                self._store.close()
                self._store = None

    def after_fork(self) -> None:
        """Make ready for a forked child: the thread that had the lock, perhaps for long, is not there to let go."""
        self._lock = threading.Lock()
        self._lent = 0


class TeamClient(Client):
    """A client that is bound to a team. The store is that of the whole."""

    def __init__(self, whole: Client, team: str) -> None:
        check_team(team)
        self._whole = whole
        self.scope = team

    @property
    def url(self) -> str:  # type: ignore[override]  # of the whole, which may be redirected
        return self._whole.url

    @property
    def store(self) -> Store:
        return self._whole.store

    @property
    def keys(self) -> Keyring:
        return self._whole.keys

    @property
    def home(self) -> Client:
        return self._whole

    @property
    def given_clock(self) -> Clock | None:
        return self._whole.given_clock

    @property
    def clock(self) -> Clock:
        return self._whole.clock

    @contextmanager
    def redirect(self, url: str, clock: Clock | None = None) -> Iterator[None]:
        with self._whole.redirect(url, clock):
            yield

    def new_ids(self, count: int, after: UUID | None = None) -> list[UUID]:
        return self._whole.new_ids(count, after)

    def within(self, team: str) -> Client:
        return self._whole.within(team)

    def owners(self) -> Mapping[str, str]:
        return self._whole.owners()

    def shown(self, job: Job) -> Job:
        if self.team is None:
            return job
        return replace(
            job, key=local_name(job.key), schedule=local_name(job.schedule), fair=local_name(job.fair) or None
        )

    def full_name(self, name: str) -> str:
        return full_name(self.team, name)

    def enqueue(self, jobs: Sequence[NewJob], conn: object = OWN, entries: Sequence[Entry] = ()) -> list[UUID]:
        self._check_reach(jobs)
        return super().enqueue([job.given_to(self.team) for job in jobs], conn, entries)

    def repeats(self, jobs: Sequence[NewJob]) -> set[UUID]:
        return super().repeats([job.given_to(self.team) for job in jobs])

    def enqueue_workflow(self, new: NewWorkflow, conn: object = OWN) -> UUID:
        undoing = () if new.job.plan is None else decode_plan(new.job.plan).undo
        self._check_reach([new.job, *new.members, *(undo.job for undo in undoing)])
        members = tuple(job.given_to(self.team) for job in new.members)
        return super().enqueue_workflow(NewWorkflow(new.job.given_to(self.team), members), conn)

    def check_queues(self, names: Iterable[str]) -> None:
        owners = self.owners()
        for name in names:
            if name in owners and owners[name] != self.scope:
                raise InvalidValue(f"queue {name!r} takes no jobs of team {self.scope!r}; name another")

    def _check_reach(self, jobs: Sequence[NewJob]) -> None:
        """Refuse jobs for queues that are another team's, or that come after jobs which are."""
        self.check_queues({job.queue for job in jobs})
        parents = {edge.parent for job in jobs for edge in job.parents}.difference(job.id for job in jobs)
        # One that is not known may be part of the caller's own transaction; if it is not, the store says so.
        others = [job.id for job in self.store.get(parents).values() if not self.sees(job.team)] if parents else []
        if others:
            raise JobNotFound(min(others))

    @contextmanager
    def lend(self) -> Iterator[Store]:
        with self._whole.lend() as store:
            yield store

    def close(self) -> None:
        self._whole.close()


def _state(wanted: JobState | str) -> JobState:
    if wanted not in tuple(JobState):
        hint = did_you_mean(str(wanted), JobState)
        raise InvalidValue(f"expected state to be one of {', '.join(JobState)}, got: {shortened(wanted)}{hint}")
    return JobState(wanted)


def check_limit(limit: int) -> None:
    """Refuse a number of things to list that is none."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 0 <= limit <= _LARGEST_PAGE:
        raise InvalidValue(f"expected limit to be a whole number from 0 to {_LARGEST_PAGE:,}, got: {shortened(limit)}")


_clients: WeakSet[Client] = WeakSet()


def _after_fork() -> None:
    for client in list(_clients):
        client.after_fork()


os.register_at_fork(after_in_child=_after_fork)
