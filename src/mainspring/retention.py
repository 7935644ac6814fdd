"""Retention of an app's database: rules for how long finished jobs are kept, and what goes by them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mainspring.client import Client
from mainspring.errors import InvalidValue, did_you_mean
from mainspring.model.duration import Duration, duration
from mainspring.model.job import JobState
from mainspring.model.retention import Covers, Prunable, RetentionRule
from mainspring.model.text import shortened
from mainspring.scheduler.prune import RETENTION, retention
from mainspring.twin import twin

__all__ = ["Covers", "Prunable", "Retention", "RetentionRule"]


class Retention:
    """All rules. What none of them covers is kept for as long as the nodes are told to.

    Each finished job goes by one rule: of those that cover it the most precise, which is one that names its team, then
    one that names its queue, then one that names its state. An app that is bound to a team has rules for its jobs only.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def set(
        self,
        *,
        state: JobState | str | None = None,
        queue: str | None = None,
        team: str | None = None,
        age: Duration | None = None,
        count: int | None = None,
    ) -> RetentionRule:
        """Keep finished jobs for *age*, or the newest *count* of them, whichever is less; return the rule.

        It takes the place of one that covers the same. Without an age they are kept for as long as the rest.
        """
        kept = None if age is None else duration(age, "age")
        rule = RetentionRule(self._covers(team, queue, state), kept, count)
        rule.check()
        self._client.store.set_retention(rule)
        return rule

    def list(self) -> Sequence[RetentionRule]:
        """Return all rules, the most precise first."""
        return [rule for rule in self._client.store.retention() if self._client.scope in (None, rule.covers.team)]

    def remove(self, *, state: JobState | str | None = None, queue: str | None = None, team: str | None = None) -> bool:
        """Take back the rule that covers just that; return whether there was one."""
        covers = self._covers(team, queue, state)
        covers.check()
        return self._client.store.remove_retention(covers)

    def prunable(self, default: Duration = RETENTION) -> Sequence[Prunable]:
        """Return what would go now, by rule, if what no rule covers is kept for *default*."""
        found = self._client.store.prunable(retention(default))
        return [one for one in found if self._client.scope in (None, one.covers.team)]

    def prune(self, default: Duration = RETENTION, *, tell: Callable[[int], None] | None = None) -> int:
        """Remove what the rules let go, as every node does from time to time; return how many jobs went.

        What no rule covers is kept for *default*. *tell* is called with each number of jobs that have gone.
        """
        if self._client.scope is not None:
            raise InvalidValue(
                f"expected an app that is bound to no team to prune, got one of {self._client.scope!r}; "
                "its nodes prune by its rules by themselves"
            )
        return self._client.store.prune(retention(default), tell)

    def _covers(self, team: str | None, queue: str | None, state: JobState | str | None) -> Covers:
        scope = self._client.scope
        if scope is not None and team not in (None, scope):
            raise InvalidValue(f"expected rules of an app of team {scope!r} to be about that, got: {shortened(team)}")
        return Covers(team if scope is None else scope, queue, None if state is None else _state(state))

    aset = twin(set)  # noqa: A003 - the method above
    alist = twin(list)  # noqa: A003 - the method above
    aremove = twin(remove)
    aprunable = twin(prunable)
    aprune = twin(prune)


def _state(wanted: JobState | str) -> JobState:
    final = [str(state) for state in JobState if state.final]
    if wanted not in tuple(JobState):
        hint = did_you_mean(str(wanted), final)
        raise InvalidValue(f"expected state to be one of {', '.join(final)}, got: {shortened(wanted)}{hint}")
    return JobState(wanted)
