"""A token as programs are told of it."""

from __future__ import annotations

from mainspring.documents.values import Told, instant, read
from mainspring.model.token import Token


def token_document(token: Token) -> dict[str, object]:
    return {
        "id": token.id,
        "name": token.name,
        "grants": dict(token.grants),
        "created_at": token.created_at.isoformat(),
        "created_by": token.created_by,
        "expires_at": instant(token.expires_at),
        "revoked_at": instant(token.revoked_at),
        "last_used_at": instant(token.last_used_at),
    }


def token_of(told: Told) -> Token:
    return read(told, Token)
