"""Reveal: put the values of secrets where the arguments of a job name them, when it is about to start."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mainspring.clock import Clock
from mainspring.errors import MainspringError, SecretNotFound
from mainspring.keys import Keyring
from mainspring.model.job import Job
from mainspring.model.outcome import Failed
from mainspring.model.payload import decode_call, written
from mainspring.model.sealed import secret_context
from mainspring.model.secret import Path, revealed
from mainspring.model.task import Task
from mainspring.model.team import DEFAULT_TEAM
from mainspring.store import Store
from mainspring.worker.failure import failure_of

_FRESH = 2.0
"""Seconds for which a value is used again before the database is asked once more."""

_MOST = 1_000
"""Values that are remembered at most."""

Name = tuple[str, str]
"""Of a secret, with its team's in front."""


class Naming(NamedTuple):
    """A job that names secrets, and where."""

    job: Job
    task: Task
    secrets: Mapping[Path, str]


class Revealed(NamedTuple):
    """The payload of a job with the values of its secrets, and these."""

    payload: str
    values: tuple[str, ...]


class Revealer:
    """Opens secrets for the jobs of their teams. Safe from any thread.

    Values are remembered for a moment only, so that one that was changed or removed is not given out any more.
    """

    def __init__(self, store: Store, keys: Keyring, clock: Clock) -> None:
        self._store = store
        self.keys = keys
        self._clock = clock
        self._known: dict[Name, tuple[float, str]] = {}
        self._looking = threading.Lock()

    def reveal(self, naming: Sequence[Naming]) -> list[Revealed | Failed]:
        """Return, for each, the payload to start it with; or how it fails, because a secret can't be had."""
        wanted = {(_team(job), name) for job, _, secrets in naming for name in secrets.values()}
        values = self._values(wanted)
        return [_revealed(one, values) for one in naming]

    def _values(self, wanted: set[Name]) -> dict[Name, str | MainspringError]:
        with self._looking:
            now = self._clock.steady()
            self._known = {name: known for name, known in self._known.items() if now - known[0] < _FRESH}
            found: dict[Name, str | MainspringError] = {
                name: self._known[name][1] for name in wanted if name in self._known
            }
            if missing := wanted - found.keys():
                found |= self._opened(missing)
                fresh = {name: (now, value) for name, value in found.items() if isinstance(value, str)}
                if len(self._known) + len(fresh) <= _MOST:
                    self._known = {**fresh, **self._known}
            return found

    def _opened(self, names: set[Name]) -> dict[Name, str | MainspringError]:
        opened: dict[Name, str | MainspringError] = {name: SecretNotFound(name[1], name[0]) for name in names}
        for secret in self._store.sealed_secrets(names):
            name = secret.team, secret.name
            try:
                opened[name] = self.keys.unseal(secret.sealed, secret_context(*name), secret.described)
            except MainspringError as error:  # no key, or no library for it
                opened[name] = error
        return opened


def _revealed(naming: Naming, values: Mapping[Name, str | MainspringError]) -> Revealed | Failed:
    job, task, secrets = naming
    own = {name: values[_team(job), name] for name in secrets.values()}
    for value in own.values():
        if isinstance(value, MainspringError):
            # It may be set, or its key be given to this worker, before the job is tried again.
            return Failed(failure_of(value, task.name), retryable=task.retry.covers(value))
    known = {name: value for name, value in own.items() if isinstance(value, str)}
    call = revealed(decode_call(job.payload), secrets, known)
    return Revealed(written(call), tuple(known.values()))


def _team(job: Job) -> str:
    return job.team or DEFAULT_TEAM
