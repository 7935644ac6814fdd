"""Teams of an app's database: what they may have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from mainspring.client import Client
from mainspring.errors import InvalidValue, NotAllowed, TeamNotFound
from mainspring.model.team import Quotas, Team, check_team
from mainspring.model.text import shortened
from mainspring.twin import twin


class Teams:
    """All teams of which something was said. A team needs no making: it is there when something is made within it."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def set(self, name: str, **quotas: Unpack[Quotas]) -> Team:
        """Say what a team may have: `max_pending` jobs that have not ended, `max_schedules`, and jobs at a `rate`.

        The rate lets `burst` of them come together after a rest, as many as its own number unless given. What is left
        out stays as it is, and None lifts it. This is what `admit` goes by; who works with the database himself does
        not ask.
        """
        self._check_unbound()
        check_team(name)
        return self._client.store.set_team(name, quotas)

    def get(self, name: str) -> Team:
        """Return what was said of the team."""
        found = self._client.store.teams(self._seen(name))
        if not found:
            raise TeamNotFound(name, [team.name for team in self.list()])
        return found[0]

    def list(self) -> Sequence[Team]:
        """Return the teams of which something was said, by name."""
        return self._client.store.teams(self._client.scope)

    def remove(self, name: str) -> None:
        """Forget what was said of the team, which may then have as much as it likes. What is the team's stays."""
        self._check_unbound()
        if not self._client.store.remove_team(self._seen(name)):
            raise TeamNotFound(name, [team.name for team in self.list()])

    def admit(self, name: str, *, jobs: int = 0, schedules: int = 0) -> None:
        """Raise QuotaExceeded if the team may not have so many more now.

        The rate holds exactly, however many ask at once. Of jobs that have not ended there may be some more than the
        quota: those that others of the team were let have at the same instant.
        """
        for what, number in (("jobs", jobs), ("schedules", schedules)):
            if isinstance(number, bool) or not isinstance(number, int) or number < 0:
                raise InvalidValue(f"expected {what} to be a whole number from 0 on, got: {shortened(number)}")
        self._client.store.admit_team(self._seen(name), jobs, schedules)

    aset = twin(set)  # noqa: A003 - the method above
    aget = twin(get)
    alist = twin(list)  # noqa: A003 - the method above
    aremove = twin(remove)
    aadmit = twin(admit)

    def _seen(self, name: str) -> str:
        """Return *name* if it is that of a team, and of none that is not there for this client."""
        check_team(name)
        if self._client.scope not in (None, name):
            raise TeamNotFound(name, [])
        return name

    def _check_unbound(self) -> None:
        if self._client.scope is not None:
            raise NotAllowed(self._client.scope, "say what a team may have")
