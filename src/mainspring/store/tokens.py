"""Tokens: kept, found, and looked at when one is shown. Their secrets never come here, only the digests of these."""

from __future__ import annotations

import hmac
from contextlib import suppress
from datetime import timedelta

from mainspring.errors import StoreError
from mainspring.model.token import NewToken, Token
from mainspring.store import rows
from mainspring.store.database import Database

USED_EVERY = timedelta(minutes=1)
"""How exactly it is known when a token was used last: to write it down each time would make every read a write."""

_NO_DIGEST = "0" * 64


def create(db: Database, new: NewToken, lasting: timedelta | None) -> Token:
    """See `protocol.Tokens.create_token`."""
    (row,) = db.run(
        "create_token",
        token=new.id,
        digest=new.digest,
        name=new.name,
        grants=rows.encoded(new.grants),
        by=new.created_by,
        lasting=lasting,
    )
    return Token(*row)


def verify(db: Database, token_id: str, digest: str) -> Token | None:
    """See `protocol.Tokens.verify_token`."""
    found = db.read("look_at_token", token=token_id, every=USED_EVERY)
    stored, live, idle, *row = found[0] if found else (_NO_DIGEST, False, False)
    # Before anything else is asked, so that one which is not known takes as long as one whose secret is another.
    if not hmac.compare_digest(stored, digest) or not live:
        return None
    if idle:
        with suppress(StoreError):  # it is as good as before where nothing can be written
            db.run("use_token", token=token_id, every=USED_EVERY)
    return Token(*row)


def revoke(db: Database, token_id: str) -> Token | None:
    """See `protocol.Tokens.revoke_token`."""
    found = db.run("revoke_token", token=token_id)
    return Token(*found[0]) if found else None


def get(db: Database, token_id: str) -> Token | None:
    """See `protocol.Tokens.get_token`."""
    found = db.read("get_token", token=token_id)
    return Token(*found[0]) if found else None


def tokens(db: Database) -> list[Token]:
    """See `protocol.Tokens.tokens`."""
    return [Token(*row) for row in db.read("tokens")]
