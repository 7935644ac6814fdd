"""Tokens: made, looked at and revoked."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path
from starlette.responses import Response

from mainspring.api.callers import Asking
from mainspring.api.documents import NewTokenDocument, TokenDocument, TokenRequest, Tokens
from mainspring.api.policy import needs
from mainspring.api.routing import Routes, answer
from mainspring.documents.tokens import token_document
from mainspring.model.token import Role

routes = Routes("tokens")

TokenId = Annotated[str, Path(pattern=r"^[a-z2-7]{12}$")]


@routes.post("/tokens", needs(Role.ADMIN, records="token.create"), gives=NewTokenDocument, status=201)
def create_token(caller: Asking, wanted: TokenRequest) -> Response:
    """Make a token. Its text is in the answer, and never shown again.

    An admin of a team makes tokens for that team alone; one everywhere (team `*`) for any.
    """
    caller.record(wanted.name, grants=dict(wanted.grants))
    text, token = caller.reach.tokens.create(wanted.name, wanted.grants, expires=wanted.expires, by=caller.actor)
    return answer({"text": text, "token": token_document(token)}, 201)


@routes.get("/tokens", needs(Role.ADMIN), gives=Tokens)
def list_tokens(caller: Asking) -> Response:
    """List tokens, oldest first, also those that let nobody in any more.

    They are those for the team alone; an admin everywhere who names no team sees all.
    """
    return answer({"items": [token_document(token) for token in caller.reach.tokens.list()]})


@routes.get("/tokens/{token_id}", needs(Role.ADMIN), gives=TokenDocument)
def get_token(caller: Asking, token_id: TokenId) -> Response:
    """Show what is known of a token."""
    return answer(token_document(caller.reach.tokens.get(token_id)))


@routes.post("/tokens/{token_id}/revoke", needs(Role.ADMIN, records="token.revoke"), gives=TokenDocument)
def revoke_token(caller: Asking, token_id: TokenId) -> Response:
    """Let nobody in with a token from now on: within a second on all servers."""
    caller.reach.tokens.get(token_id)
    caller.record(token_id)
    return answer(token_document(caller.reach.tokens.revoke(token_id)))
