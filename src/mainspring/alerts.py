"""Alerts of an app: what people would like to be told of, by rules that nodes look at in turn."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from mainspring.client import Client
from mainspring.errors import AlertNotFound
from mainspring.model.alert import (
    EVERY,
    Alert,
    AlertDefinition,
    AlertState,
    NewAlert,
    Rule,
    age,
    dead,
    depth,
    error_rate,
    lag,
    missed_schedules,
    missing_workers,
    stuck,
)
from mainspring.model.channel import Channel, decode_channels, encode_channels
from mainspring.model.duration import Duration, duration
from mainspring.model.job import check_name
from mainspring.model.team import full_name, local_name
from mainspring.twin import twin

__all__ = [
    "Alert",
    "AlertState",
    "Alerts",
    "age",
    "dead",
    "depth",
    "error_rate",
    "lag",
    "missed_schedules",
    "missing_workers",
    "stuck",
]


class Alerts:
    """All alerts of the app's database; of one that is bound to a team, the team's, which look at its jobs only."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def add(
        self,
        alert_id: str,
        rule: Rule,
        *,
        every: Duration = EVERY,
        notify: Sequence[Channel] = (),
        hold: Duration = 0,
    ) -> Alert:
        """Store an alert that looks whether *rule* holds, so often, and return it.

        When it has held for as long as *hold* says, the alert fires; when it no longer does, it has resolved. Of either
        those are told whom *notify* names, once. One whose id is known is defined anew, and goes on as it stands.
        """
        check_name(alert_id, "the id of an alert")
        definition = AlertDefinition(
            rule=rule,
            every=duration(every, "every"),
            hold=duration(hold, "hold"),
            notify=decode_channels(encode_channels(notify)),
        )
        new = NewAlert(id=self._full(alert_id), definition=definition, scope=self._client.scope)
        self._client.store.put_alert(new)
        return self.get(alert_id)

    def list(self) -> Sequence[Alert]:
        """Return all alerts, in the order of their ids, with what the last look has found."""
        return [self._shown(alert) for alert in self._client.store.alerts(scope=self._client.scope)]

    def get(self, alert_id: str) -> Alert:
        found = self._client.store.alerts(self._full(alert_id), self._client.scope)
        if not found:
            raise self._unknown(alert_id)
        return self._shown(found[0])

    def remove(self, alert_id: str) -> None:
        """Remove it. Nobody is told of it any more, not even that it has resolved."""
        if not self._client.store.remove_alert(self._full(alert_id)):
            raise self._unknown(alert_id)

    def _full(self, alert_id: str) -> str:
        """Return its name among those of all teams; one that looks at everybody's jobs is nobody's, and stays bare."""
        if self._client.scope is None:
            return alert_id
        return full_name(self._client.scope, alert_id)

    def _shown(self, alert: Alert) -> Alert:
        return alert if self._client.scope is None else replace(alert, id=local_name(alert.id))

    def _unknown(self, alert_id: str) -> AlertNotFound:
        return AlertNotFound(alert_id, [one.id for one in self.list()])

    aadd = twin(add)
    alist = twin(list)  # noqa: A003 - the method above
    aget = twin(get)
    aremove = twin(remove)
