"""Prune: remove finished jobs, and what is kept of their attempts, when they are old enough."""

from __future__ import annotations

import random
from datetime import timedelta

from mainspring.errors import InvalidValue, StoreError
from mainspring.model.duration import Duration, duration
from mainspring.model.text import counted
from mainspring.scheduler.log import log
from mainspring.store import Store

RETENTION = timedelta(days=30)
"""How long finished jobs are kept unless told otherwise: failed ones too, so that a person has time to replay them."""

EVERY = 3600.0
"""Seconds between looks, more or less: mostly whole days go, and what is kept for an hour may stay for two."""

FIRST = 60.0
"""Seconds within which the first look comes: soon, for a node may not live long."""

_PAUSE_AFTER_ERROR = 60.0


class Pruner:
    """Removes what the rules for retention let go, and of what they don't cover that which finished *age* ago.

    Nodes that were started together look at moments of their own, because for all but one of them there is nothing
    left to do.
    """

    def __init__(self, store: Store, age: timedelta) -> None:
        self._store = store
        self._age = age
        self._waited = False

    def __call__(self) -> float:
        """Prune once, and return the seconds until the next look; the first call only waits for its moment."""
        if not self._waited:
            self._waited = True
            return random.uniform(0, FIRST)  # noqa: S311 - no secret
        try:
            pruned = self._store.prune(self._age)
        except StoreError as error:
            log.warning("can't prune, trying on: %s", error)
            return _jittered(_PAUSE_AFTER_ERROR)
        if pruned:
            log.info("pruned %s that finished long enough ago", counted(pruned, "job"))
        return _jittered(EVERY)


def retention(wanted: Duration) -> timedelta:
    """Return the length of time that *wanted* says, which must be one."""
    kept = duration(wanted, "retention")
    if not kept:
        raise InvalidValue("expected retention to be a duration longer than 0, such as 30d, got: 0")
    return kept


def _jittered(seconds: float) -> float:
    return seconds * random.uniform(0.5, 1.5)  # noqa: S311 - no secret
