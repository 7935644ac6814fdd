"""Dead letters of an app: failed jobs by their cause, and what a person does about them."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypedDict, Unpack
from uuid import UUID

from mainspring.client import Client, check_limit
from mainspring.errors import DeadGroupNotFound, InvalidValue, JobNotFound, check_known
from mainspring.job_handle import JobHandle, id_of
from mainspring.keys import open_payload, payload_closer
from mainspring.model.dead import Count, Group, Letter, Meant, Replayed
from mainspring.model.job import Job, JobState
from mainspring.model.rate import Rate
from mainspring.model.rate import rate as read_rate
from mainspring.model.sealed import is_closed
from mainspring.model.task import Registry
from mainspring.model.text import shortened
from mainspring.replay import Halt, Plan, Progress, Replay
from mainspring.service import said_by
from mainspring.store.protocol import LetterFilter
from mainspring.twin import twin
from mainspring.workflow_handle import handle_of

_BATCH = 500
_PAGE = 5_000
_MOST_CANARIES = 10_000


class Chosen(TypedDict, total=False):
    """Which dead letters are meant: those with these ids, or those of a group, a queue, a task or all three.

    Of either those that died before *finished_until* alone, if that is said.
    """

    group: str | None
    ids: Iterable[UUID | str] | None
    queue: str | None
    task: str | None
    finished_until: datetime | None


class Dead:
    """The dead letters of the app's database.

    A group is named by its fingerprint, or by as much of its beginning as no other group shares. Each call has an
    awaitable twin whose name begins with `a`.
    """

    def __init__(self, client: Client, tasks: Registry) -> None:
        self._client = client
        self._tasks = tasks

    def groups(self, queue: str | None = None, task: str | None = None, limit: int = 50) -> builtins.list[Group]:
        """Return dead letters by their cause, the group that was seen last first."""
        check_limit(limit)
        return self._client.store.dead_groups(self._match(None, queue, task), limit)

    def list(
        self,
        group: str | None = None,
        queue: str | None = None,
        task: str | None = None,
        before: UUID | str | None = None,
        limit: int = 50,
    ) -> builtins.list[JobHandle[Any]]:
        """Return dead letters, newest job first; pass the last one's id as *before* for the next page."""
        check_limit(limit)
        match = self._match(group, queue, task)
        found = self._client.store.dead_page(match, None if before is None else id_of(before), limit)
        return [handle_of(self._client, self._tasks, self._client.shown(job)) for job in found]

    def count(
        self,
        group: str | None = None,
        queue: str | None = None,
        task: str | None = None,
        finished_until: datetime | None = None,
    ) -> int:
        """Return how many dead letters there are."""
        return self._client.store.dead_count(self._match(group, queue, task, finished_until))

    def meant(self, group: str | None = None, queue: str | None = None, task: str | None = None) -> Meant:
        """Return how many dead letters there are, and the *finished_until* by which no others are meant later on."""
        return self._client.store.dead_meant(self._match(group, queue, task))

    def fingerprint(self, group: str) -> str:
        """Return the fingerprint that begins like that, by which a group is known whatever others there come to be."""
        if not isinstance(group, str) or not group or "\0" in group:
            raise InvalidValue(f"expected group to be a fingerprint or the beginning of one, got: {shortened(group)}")
        found = self._client.store.dead_fingerprints(group.lower(), team=self._client.scope)
        if not found:
            raise DeadGroupNotFound(group)
        if len(found) > 1 and found[0] != group.lower():
            raise InvalidValue(f"more than one group begins with {group!r}: {', '.join(found)}; give more of it")
        return found[0]

    def look(self, most: int) -> Count:
        """Return how many dead letters there are, and whether there may be more, after a look at up to *most*."""
        return self._client.store.dead_among(most, self._client.scope)

    def replay(  # noqa: PLR0913 - one parameter for each thing that a person may say of it
        self,
        *,
        canary: int = 5,
        rate: Rate | str = "20/s",
        stop_at: float = 0.2,
        patch: Mapping[str, object] | None = None,
        reason: str | None = None,
        by: str | None = None,
        progress: Progress | None = None,
        halt: Halt | None = None,
        **chosen: Unpack[Chosen],
    ) -> Replayed:
        """Run dead letters again: *canary* of them first, and once these have finished the rest, at *rate*.

        It stops by itself when a larger share than *stop_at* of those that finished last fails again, and returns
        when all have finished; *progress* is called with how far it is, and *halt* again and again, to stop it by
        saying why. *patch* sets arguments by name. What was replayed is a dead letter no more, so after a crash the
        same call goes on with the rest; one that has failed again meanwhile is a new dead letter.
        """
        plan = Plan(
            canary=_canary(canary),
            rate=read_rate(rate),
            stop_at=_share(stop_at),
            reason=_record("replayed", by, reason),
            rewrite=self._rewrite(patch) if patch else None,
            progress=progress,
            halt=halt,
        )
        letters = self._letters(chosen)
        if plan.rewrite is not None:
            self._try_out(plan.rewrite, letters)
        return Replay(self._client, letters, plan).run()

    def revive(self, *, reason: str | None = None, by: str | None = None, **chosen: Unpack[Chosen]) -> tuple[int, int]:
        """Run dead letters again all at once, and return how many were meant, and how many live again.

        Nobody looks at what becomes of them: `replay` does, and tries a few first.
        """
        letters, record = self._letters(chosen), _record("replayed", by, reason)
        return len(letters), sum(len(self._client.store.replay_letters(batch, record)) for batch in _batches(letters))

    def discard(self, *, reason: str | None = None, by: str | None = None, **chosen: Unpack[Chosen]) -> int:
        """Give dead letters up, and return how many: they are cancelled, and stay in history until they are pruned."""
        letters, record = self._letters(chosen), _record("discarded", by, reason)
        return sum(len(self._client.store.discard_letters(batch, record)) for batch in _batches(letters))

    agroups = twin(groups)
    alist = twin(list)  # noqa: A003 - the method
    acount = twin(count)
    ameant = twin(meant)
    afingerprint = twin(fingerprint)
    areplay = twin(replay)
    arevive = twin(revive)
    adiscard = twin(discard)

    def _match(
        self, group: str | None, queue: str | None, task: str | None, finished_until: datetime | None = None
    ) -> LetterFilter:
        return LetterFilter(
            group=None if group is None else self.fingerprint(group),
            queue=queue,
            task=task,
            team=self._client.scope,
            finished_until=finished_until,
        )

    def _letters(self, chosen: Chosen) -> builtins.list[Letter]:
        """Return the dead letters that are meant as they are now; others that die from now on are not."""
        check_known(chosen, Chosen)
        ids, until = chosen.get("ids"), chosen.get("finished_until")
        like = chosen.get("group"), chosen.get("queue"), chosen.get("task")
        if (ids is None) == (like == (None, None, None)):
            raise InvalidValue(
                "expected which dead letters are meant, either by ids= or by group=, queue= or task=, "
                f"got {'neither' if ids is None else 'both'}"
            )
        match = self._match(*like, until)
        if ids is None:
            return self._found(match)
        letters = self._named([id_of(one) for one in ids])
        return [letter for letter in letters if until is None or letter.finished_at < until]

    def _found(self, match: LetterFilter) -> builtins.list[Letter]:
        letters: builtins.list[Letter] = []
        while page := self._client.store.dead_letters(match, letters[-1].id if letters else None, _PAGE):
            letters += page
        return letters

    def _named(self, ids: Sequence[UUID]) -> builtins.list[Letter]:
        """Return those of the jobs with these *ids* that are dead letters; each must exist."""
        letters: builtins.list[Letter] = []
        for batch in _batches(sorted(set(ids))):
            jobs = self._client.store.get(batch)
            for job_id in batch:
                if job_id not in jobs or not self._client.sees(jobs[job_id].team):
                    raise JobNotFound(job_id)
                job = jobs[job_id]
                if job.state is JobState.FAILED and job.finished_at is not None:
                    letters.append(Letter(job.id, job.finished_at))
        return letters

    def _rewrite(self, patch: Mapping[str, object]) -> Callable[[Job], str]:
        if not isinstance(patch, Mapping) or not all(isinstance(name, str) for name in patch):
            raise InvalidValue(f"expected patch to be a mapping of names to arguments, got: {shortened(patch)}")
        return lambda job: self._patched(job, patch)

    def _patched(self, job: Job, patch: Mapping[str, object]) -> str:
        """Return the payload of *job* with *patch*, sealed if it was."""
        keys = self._client.keys
        close = payload_closer(keys if is_closed(job.payload) else None, job.task)
        return close(job.id, self._tasks.known(job.task).patched(open_payload(keys, job), patch))

    def _try_out(self, rewrite: Callable[[Job], str], letters: Sequence[Letter]) -> None:
        """Raise what is wrong with the patch of any letter before the first one is replayed."""
        for batch in _batches(letters):
            for job in self._client.store.get([letter.id for letter in batch]).values():
                rewrite(job)


def _batches(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (items[start : start + _BATCH] for start in range(0, len(items), _BATCH))


def _record(deed: str, by: str | None, reason: str | None) -> str:
    """Return what is kept with each job: what was done, by whom, and why."""
    return f"{deed} {said_by(by, reason)}"


def _canary(value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST_CANARIES:
        raise InvalidValue(
            f"expected canary to be a whole number from 0 to {_MOST_CANARIES:,}, got: {shortened(value)}"
        )
    return value


def _share(value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidValue(f"expected stop_at to be a share from 0 to 1, such as 0.2, got: {shortened(value)}")
    return value
