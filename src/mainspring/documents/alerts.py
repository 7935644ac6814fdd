"""Alerts as programs are told of them."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import asdict

from mainspring.documents.values import instant, length
from mainspring.model.alert import Alert, described


def alert_document(alert: Alert) -> dict[str, object]:
    """Return *alert* as one JSON object. Channels are counted, not shown: their addresses may be secrets."""
    definition = alert.definition
    return {
        "id": alert.id,
        "team": alert.scope,
        "state": alert.state,
        "since": alert.since.isoformat(),
        "rule": {"text": described(definition.rule), "kind": definition.rule.__struct_config__.tag, **_rule(alert)},
        "every": length(definition.every),
        "hold": length(definition.hold),
        "channels": len(definition.notify),
        "value": alert.value,
        "message": alert.message,
        "evaluated_at": instant(alert.evaluated_at),
        "evaluated_by": alert.evaluated_by,
        "created_at": instant(alert.created_at),
        "changed_at": instant(alert.changed_at),
    }


def _rule(alert: Alert) -> dict[str, object]:
    told = asdict(alert.definition.rule).items()
    return {name: length(value) if isinstance(value, timedelta) else value for name, value in told}
