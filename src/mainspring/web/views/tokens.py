"""Tokens: made, looked at and revoked."""

from __future__ import annotations

from datetime import datetime

from starlette.responses import Response

from mainspring.api.policy import needs
from mainspring.clock import SystemClock
from mainspring.model.token import ALL_TEAMS, Role, Token, grants_of, parts_of
from mainspring.web.pages import Pages, Visit

pages = Pages()

_SEE = needs(Role.ADMIN)
_EXPIRES = "90d"


@pages.get("/tokens", _SEE)
def list_tokens(visit: Visit) -> Response:
    """Show tokens, the newest first, and apart from them those that let nobody in any more."""
    found = list(reversed(visit.caller.reach.tokens.list()))
    now = SystemClock().now()
    live = [token for token in found if _lets_in(token, now)]
    return visit.show(
        "tokens.html",
        live=live,
        ended=[token for token in found if token not in live],
        mine=_own_id(visit),
        any_team=visit.caller.reach is visit.caller.whole,
        all_teams=ALL_TEAMS,
        roles=list(Role),
        first=visit.caller.reach is visit.caller.whole and not found,
        expires=_EXPIRES,
    )


@pages.post("/tokens", needs(Role.ADMIN, records="token.create"))
def create_token(visit: Visit) -> Response:
    """Make a token, and show it: on this page alone, which no cache keeps and no address leads to."""
    name, expires = visit.form["name"], visit.form["expires"] or None
    grants = grants_of({visit.form["team"] or visit.caller.team: visit.form["role"]})
    visit.caller.record(name, grants=grants)
    first = not visit.caller.whole.tokens.list()
    text, token = visit.caller.reach.tokens.create(name, grants, expires=expires, by=visit.caller.actor)
    return visit.show("token.html", text=text, token=token, first=first)


@pages.get("/tokens/{token_id}/revoke", _SEE)
def ask_to_revoke(visit: Visit) -> Response:
    """Ask whether it is meant."""
    token = visit.caller.reach.tokens.get(visit.path["token_id"])
    return visit.show("token_revoke.html", token=token, own=token.id == _own_id(visit))


@pages.post("/tokens/{token_id}/revoke", needs(Role.ADMIN, records="token.revoke"))
def revoke_token(visit: Visit) -> Response:
    token = visit.caller.reach.tokens.get(visit.path["token_id"])
    visit.caller.record(token.id)
    visit.caller.reach.tokens.revoke(token.id)
    return visit.go("/tokens", f"Token {token.name} ({token.id}) lets nobody in any more.")


def _lets_in(token: Token, now: datetime) -> bool:
    return token.revoked_at is None and (token.expires_at is None or token.expires_at > now)


def _own_id(visit: Visit) -> str | None:
    """Return the id of the token by which the visitor is logged in."""
    parts = parts_of(visit.caller.token)
    return None if parts is None else parts.id
