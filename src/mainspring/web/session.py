"""Sessions of browsers: the token is the session, so that what ends the one ends the other.

It is kept in a cookie that no script can read and no other site has sent along with a form. Forms carry a second proof
that they come from a page of ours, which is made of the token and so needs no place to be kept. It names the team that
the page showed, so that what somebody does is done there, whatever he has chosen elsewhere since.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error

from starlette.requests import Request
from starlette.responses import Response

from mainspring.api.callers import TEAM_HEADER
from mainspring.api.origin import check_origin
from mainspring.api.problems import Problem
from mainspring.model.token import ALL_TEAMS

TOKEN, TEAM, SAID = "mainspring_token", "mainspring_team", "mainspring_said"
PROOF = "proof"
"""What forms call the proof that they come from a page of ours."""

_LONGEST = 14 * 24 * 3600
_LONGEST_WORD = 500
_NOBODY = "nobody"


def token_of(request: Request) -> str | None:
    return request.cookies.get(TOKEN) or None


def teams_of(request: Request) -> set[str]:
    """Return the team that the visitor has chosen, if any; to look at all teams is to choose none.

    A page that is brought up to date says whose it is, as another may have been chosen in another window.
    """
    chosen = request.query_params.get("team") or request.headers.get(TEAM_HEADER) or request.cookies.get(TEAM)
    return {chosen} if chosen and chosen != ALL_TEAMS else set()


def stay_in(answer: Response, request: Request, team: str | None) -> None:
    """Have the visitor stay in *team* if a page of ours has led there: what it leads to next is that team's as well.

    That a page brings itself up to date is no step of the visitor's, who may be elsewhere in another window.
    """
    by_link = request.headers.get("sec-fetch-site") == "same-origin" and _is_led_here(request)
    led = request.method != "GET" or (by_link and request.query_params.get("team") == team)
    if not led or team == request.cookies.get(TEAM):
        return
    if team is None:
        forget(answer, TEAM)
    else:
        keep(answer, request, TEAM, team)


def proof_of(token: str | None, team: str | None) -> str:
    """Return what forms of whoever has *token* carry on a page of *team*, or on one for which none was chosen."""
    name = team or ""
    return f"{name}:{hmac.digest((token or _NOBODY).encode(), f'mainspring form {name}'.encode(), 'sha256').hex()}"


def check_visit(request: Request, token: str | None) -> None:
    """Refuse what another site may have had the browser ask for.

    To look at a page from there is fine; it can't be seen by who has led there. Without a token the name that the page
    was asked under must be this machine's, as for the API.
    """
    changes = request.method != "GET"
    if token is None and (changes or not _is_led_here(request)):
        check_origin(request.headers)
    host, origin = request.headers.get("host", ""), request.headers.get("origin")
    site = request.headers.get("sec-fetch-site", "same-origin")
    if changes and (site != "same-origin" or origin not in (None, f"http://{host}", f"https://{host}")):
        raise Problem(403, "foreign-origin", "expected no form of a page from elsewhere")


def proven_teams(proof: str, token: str | None) -> set[str]:
    """Return the team of the page that a form with this *proof* comes from, if one was chosen."""
    team = proof.partition(":")[0]
    if not hmac.compare_digest(proof.encode(), proof_of(token, team).encode()):
        raise Problem(
            403, "foreign-form", "expected a form of a page of ours; go back, load it anew, and send it again"
        )
    return {team} if team else set()


def keep(answer: Response, request: Request, name: str, value: str) -> None:
    """Have the browser keep *value* for us alone."""
    secure = request.url.scheme == "https" or request.headers.get("x-forwarded-proto") == "https"
    answer.set_cookie(name, value, max_age=_LONGEST, httponly=True, samesite="lax", secure=secure)


def forget(answer: Response, name: str) -> None:
    answer.delete_cookie(name, httponly=True, samesite="lax")


def say(answer: Response, request: Request, words: str) -> None:
    """Have *words* shown on the next page. They are no part of its address, where anybody could have put them."""
    keep(answer, request, SAID, urlsafe_b64encode(words[:_LONGEST_WORD].encode()).decode())


def said(request: Request) -> str | None:
    try:
        return urlsafe_b64decode(request.cookies.get(SAID, "")).decode() or None
    except (Error, UnicodeDecodeError, ValueError):
        return None


def _is_led_here(request: Request) -> bool:
    """Return whether somebody has followed a link, rather than a page of another site having asked."""
    return request.headers.get("sec-fetch-dest") == "document"
