"""Tokens: what a program or a person shows to be let in, and what it may do for which team."""

from __future__ import annotations

import re
from base64 import b32encode, urlsafe_b64encode
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import NamedTuple

import msgspec

from mainspring.errors import InvalidValue, did_you_mean
from mainspring.model.team import check_team
from mainspring.model.text import shortened

ALL_TEAMS = "*"
"""In place of a team's name: what is granted holds for every team, also for those that come later."""

SECRET_BYTES = 32
ID_BYTES = 8

_ID_LETTERS = 12
_TEXT = re.compile(r"ms_([a-z2-7]{12})_([A-Za-z0-9_-]{43})")
_ID = re.compile(r"[a-z2-7]{12}")
_LONGEST_NAME = 100


class Role(StrEnum):
    """What one may do within a team. Each may do what those before it may."""

    VIEWER = "viewer"  # look
    SUBMITTER = "submitter"  # enqueue, and rule what comes of it
    OPERATOR = "operator"  # rule queues, schedules and dead letters
    ADMIN = "admin"  # give and revoke tokens

    def allows(self, other: Role) -> bool:
        """Return whether who has this role may do what asks for *other*."""
        return _RANKS[self] >= _RANKS[other]


_RANKS = {role: rank for rank, role in enumerate(Role)}


class Token(msgspec.Struct, frozen=True):
    """A token as it is known, without its secret. The fields stand in the order of every query's columns."""

    id: str
    name: str
    grants: Mapping[str, Role]
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None  # to the minute

    def role_in(self, team: str) -> Role | None:
        """Return what it may do within *team*, by the team's name; None stands for nothing."""
        granted = [self.grants[name] for name in (team, ALL_TEAMS) if name in self.grants]
        return max(granted, key=_RANKS.__getitem__, default=None)


class NewToken(msgspec.Struct, frozen=True, kw_only=True):
    """A token that is not stored yet. Of its secret no more than the digest is ever stored."""

    id: str
    digest: str
    name: str
    grants: Mapping[str, Role]
    created_by: str

    def __post_init__(self) -> None:
        name = self.name
        if not isinstance(name, str) or not name.strip() or not name.isprintable() or len(name) > _LONGEST_NAME:
            raise InvalidValue(
                f"expected the name of a token to be 1 to {_LONGEST_NAME} characters that can be printed, "
                f"got: {shortened(name)}"
            )


class Parts(NamedTuple):
    """What the text of a token says: which it is, and the digest of its secret."""

    id: str
    digest: str


def written(id_bytes: bytes, secret_bytes: bytes) -> str:
    """Return the text of the token that is made of these random bytes."""
    secret = urlsafe_b64encode(secret_bytes).decode().rstrip("=")
    return f"ms_{b32encode(id_bytes).decode().lower()[:_ID_LETTERS]}_{secret}"


def parts_of(text: object) -> Parts | None:
    """Return what the *text* of a token says; None if it is none, whatever else it may be."""
    found = _TEXT.fullmatch(text) if isinstance(text, str) else None
    # The secret is as good as 256 random bits, so that a slow hash would keep nobody from guessing who could otherwise.
    return None if found is None else Parts(found[1], sha256(found[2].encode()).hexdigest())


def is_token_id(text: object) -> bool:
    """Return whether *text* could be the id of a token."""
    return isinstance(text, str) and _ID.fullmatch(text) is not None


def grants_of(given: Mapping[str, Role | str]) -> dict[str, Role]:
    """Return what *given* grants, by the names of teams; refuse what grants nothing."""
    if not isinstance(given, Mapping) or not given:
        raise InvalidValue(
            f"expected grants to map teams to roles, such as {{'acme': 'submitter'}}, got: {shortened(given)}"
        )
    for team in given:
        if team != ALL_TEAMS:
            check_team(team)
    return {team: role_of(role) for team, role in given.items()}


def role_of(value: Role | str) -> Role:
    """Return the role that *value* says."""
    if not isinstance(value, str) or value not in tuple(Role):
        hint = did_you_mean(str(value), Role)
        raise InvalidValue(f"expected a role to be one of {', '.join(Role)}, got: {shortened(value)}{hint}")
    return Role(value)
