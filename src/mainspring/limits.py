"""Limits of an app's database: looked at, and what waits for them let go on."""

from __future__ import annotations

from collections.abc import Sequence

from mainspring.client import Client
from mainspring.model.limits import LimitStatus, check_limit_key
from mainspring.twin import twin


class Limits:
    """All limits. One needs no making: it is there when a job that has it is claimed.

    They hold for the whole fleet, so a team other than the default one sees none.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def list(self) -> Sequence[LimitStatus]:
        """Return the limits that jobs have come to lately, by key; breakers are not among them."""
        return self._client.store.limits() if self._client.of_fleet else []

    def release(self, key: str) -> int:
        """Make all jobs ready that wait for the limit with this key; return how many did.

        Each is judged again when it is claimed, by the code that claims it: so this is for a limit that was removed or
        changed, and breaks none that is still there. Jobs of paused tasks and queues stay until these are resumed.
        """
        check_limit_key(key)
        self._client.check_of_fleet("release a limit, which may hold back anybody's jobs")
        return self._client.store.release_limit(key)

    alist = twin(list)  # noqa: A003 - the method above
    arelease = twin(release)
