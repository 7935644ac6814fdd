"""Tokens of an app's database: made, looked at and revoked, and asked whom they let in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mainspring.client import Client
from mainspring.clock import secret_bytes
from mainspring.errors import InvalidValue, TokenNotFound
from mainspring.model.duration import Duration, duration
from mainspring.model.text import said
from mainspring.model.token import (
    ID_BYTES,
    SECRET_BYTES,
    NewToken,
    Role,
    Token,
    grants_of,
    is_token_id,
    parts_of,
    written,
)
from mainspring.service import person
from mainspring.twin import twin


class Tokens:
    """All tokens; within a team, those that let nobody in elsewhere."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def create(
        self, name: str, grants: Mapping[str, Role | str], *, expires: Duration | None = None, by: str | None = None
    ) -> tuple[str, Token]:
        """Make a token with a role in each of some teams, `*` for all; return its text, and what is known of it.

        The text is told this once: nothing that is stored could be shown in its place. *by* is who makes it: the user
        of this process and its host, unless told.
        """
        granted = grants_of(grants)
        if not self._sees(granted):
            raise InvalidValue(f"expected a token that is made within team {self._client.scope!r} to be for it alone")
        lasting = None if expires is None else duration(expires, "expires")
        if expires is not None and not lasting:
            raise InvalidValue("expected expires to be longer than 0; leave it out for a token that never does")
        text = written(secret_bytes(ID_BYTES), secret_bytes(SECRET_BYTES))
        parts = parts_of(text)
        assert parts is not None
        who, _ = said(person() if by is None else by, None, "makes the token")
        new = NewToken(id=parts.id, digest=parts.digest, name=name, grants=granted, created_by=who)
        return text, self._client.store.create_token(new, lasting)

    def verify(self, text: str | None) -> Token | None:
        """Return the token that *text* is; None if it is none, or is not known, revoked or expired."""
        parts = parts_of(text)
        return None if parts is None else self._client.store.verify_token(parts.id, parts.digest)

    def get(self, token_id: str) -> Token:
        """Return what is known of the token with this id."""
        return self._known(token_id)

    def list(self) -> Sequence[Token]:
        """Return the tokens, oldest first, also those that let nobody in any more."""
        return [token for token in self._client.store.tokens() if self._sees(token.grants)]

    def revoke(self, token_id: str) -> Token:
        """Let nobody in with it from now on, and return what is known of it. It is not forgotten."""
        revoked = self._client.store.revoke_token(self._known(token_id).id)
        if revoked is None:
            raise TokenNotFound(token_id)
        return revoked

    acreate = twin(create)
    averify = twin(verify)
    aget = twin(get)
    alist = twin(list)  # noqa: A003 - the method above
    arevoke = twin(revoke)

    def _known(self, token_id: str) -> Token:
        """Return the token with this id, or with that of the text that was given in its place."""
        parts = parts_of(token_id)
        wanted = token_id if parts is None else parts.id
        found = self._client.store.get_token(wanted) if is_token_id(wanted) else None
        if found is None or not self._sees(found.grants):
            raise TokenNotFound(str(wanted))
        return found

    def _sees(self, grants: Mapping[str, Role]) -> bool:
        return self._client.scope is None or grants.keys() == {self._client.scope}
