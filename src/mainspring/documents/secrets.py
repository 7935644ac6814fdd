"""Secrets as programs are told of them."""

from __future__ import annotations

from mainspring.documents.values import Told, read
from mainspring.model.secret import Secret


def secret_document(secret: Secret) -> dict[str, object]:
    """Return what may be known of *secret*; its value is not."""
    return {
        "team": secret.team,
        "name": secret.name,
        "created_at": secret.created_at.isoformat(),
        "changed_at": secret.changed_at.isoformat(),
        "changed_by": secret.changed_by,
        "key_id": secret.key_id,
    }


def secret_of(told: Told) -> Secret:
    return read(told, Secret)
