"""Notifications of teams: whom to tell of what becomes of all their jobs and schedules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mainspring.client import Client
from mainspring.errors import InvalidValue, NotificationNotFound
from mainspring.model.channel import Channel, Email, Webhook
from mainspring.model.job import check_name
from mainspring.model.notice import Rule
from mainspring.model.team import DEFAULT_TEAM, check_team
from mainspring.model.text import shortened
from mainspring.notify import Delivery
from mainspring.notify.trial import send_test
from mainspring.twin import twin


class Notifications:
    """The rules of the team to which the app is bound; of the default team, or the one that is named, if it is to none.

    Members of workflows are left to their workflow, and to what they say themselves.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def add(self, rule_id: str, channel: Channel, *, team: str | None = None) -> Rule:
        """Have *channel* told of all jobs and schedules of the team, and return that. One whose id is known is changed.

        A webhook that names no secret keeps the one that it had, but only as long as it leads to the same host. A first
        rule takes effect within about a second.
        """
        check_name(rule_id, "the id of a notification")
        if not isinstance(channel, Webhook | Email):
            raise InvalidValue(f"expected a Webhook or an Email, got: {shortened(channel)}")
        return self._client.store.put_rule(self._team(team), rule_id, channel)

    def list(self, *, team: str | None = None) -> Sequence[Rule]:
        """Return the rules of the team, by id; those of all, if the app is bound to none and none is named."""
        every = team is None and self._client.scope is None
        return self._client.store.rules(None if every else self._team(team))

    def get(self, rule_id: str, *, team: str | None = None) -> Rule:
        found = self._client.store.rules(self._team(team), rule_id)
        if not found:
            raise self._unknown(rule_id, team)
        return found[0]

    def remove(self, rule_id: str, *, team: str | None = None) -> None:
        """Remove a rule. What is under way goes out."""
        if not self._client.store.remove_rule(self._team(team), rule_id):
            raise self._unknown(rule_id, team)

    def test(self, rule_id: str, *, team: str | None = None, delivery: Delivery | None = None) -> Mapping[str, object]:
        """Send a word to the channel of a rule from here and now, without a job; return what is kept of the answer.

        Raises Undelivered if it did not arrive. How it leaves is what the environment of this process says.
        """
        rule = self.get(rule_id, team=team)
        (notice_id,) = self._client.new_ids(1)
        return send_test(rule, notice_id, (delivery or Delivery.configured()).knowing(self._client.secret))

    aadd = twin(add)
    alist = twin(list)  # noqa: A003 - the method above
    aget = twin(get)
    aremove = twin(remove)
    atest = twin(test)

    def _team(self, team: str | None) -> str:
        scope = self._client.scope
        if team is None:
            return scope or DEFAULT_TEAM
        check_team(team)
        if scope is not None and team != scope:
            raise InvalidValue(f"this app is bound to team {scope!r}, and can't do anything for team {team!r}")
        return team

    def _unknown(self, rule_id: str, team: str | None) -> NotificationNotFound:
        return NotificationNotFound(rule_id, [one.id for one in self._client.store.rules(self._team(team))])
