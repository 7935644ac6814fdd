"""Policies: who may use a route. Every route has one; there is no way to make one without."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from mainspring.model.token import Role


class Where(Enum):
    """Where the caller must have the role that a route asks for."""

    TEAM = "in the team"  # of the request
    FLEET = "in team default"  # for what holds for all: limits, breakers, paused tasks
    EVERYWHERE = "in team *"  # for teams themselves, and what they may have


@dataclass(frozen=True)
class Policy:
    """A role that the caller must have. Without one the route is open to anybody."""

    role: Role | None
    where: Where = Where.TEAM
    records: str | None = None  # what the audit log calls it, if it changes anything
    scraped: bool = False  # whether the token for metrics lets in, too

    def __str__(self) -> str:
        return "nothing" if self.role is None else f"the role {self.role} {self.where.value}"


PUBLIC = Policy(None)


SCRAPED = Policy(Role.VIEWER, Where.EVERYWHERE, scraped=True)


def needs(role: Role, where: Where = Where.TEAM, *, records: str | None = None) -> Policy:
    """Return the policy of a route that asks for *role*."""
    return Policy(role, where, records)


def policy_of(endpoint: Any) -> Policy:
    """Return the policy of the route that *endpoint* handles; one without is a mistake of ours."""
    policy = getattr(endpoint, "policy", None)
    if not isinstance(policy, Policy):
        raise TypeError(f"the route of {endpoint!r} says nothing of who may use it; declare it with Routes")
    return policy
