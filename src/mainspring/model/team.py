"""Teams: whose a job, a schedule, a queue or a workflow is."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TypedDict, overload

import msgspec

from mainspring.errors import InvalidValue, check_known
from mainspring.model.rate import Rate, rate
from mainspring.model.text import shortened

DEFAULT_TEAM = "default"
"""Whose everything is that nobody gave to a team. It is stored as none at all, and so costs nothing."""

_TEAM = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_MOST = 1_000_000_000


class Team(msgspec.Struct, frozen=True):
    """A team of which something was said: what it may have, None being as much as it likes.

    The fields stand in the order of every query's columns.
    """

    name: str
    max_pending: int | None = None  # jobs that have not ended
    max_schedules: int | None = None
    interval: timedelta | None = None  # from one job to the next, if they come evenly
    burst: int | None = None  # how many may come together after a rest
    created_at: datetime | None = None


class Quotas(TypedDict, total=False):
    """What may be said of a team. What is left out stays as it is; None lifts it."""

    max_pending: int | None
    max_schedules: int | None
    rate: Rate | str | None
    burst: int | None


def with_quotas(team: Team, quotas: Quotas) -> Team:
    """Return *team* with what *quotas* say of it. A burst is the rate's own number unless it is given with that."""
    check_known(quotas, Quotas, "no quota")
    changes: dict[str, object] = {}
    for name in ("max_pending", "max_schedules"):
        if name in quotas:
            changes[name] = _checked(quotas[name], name, 0)
    if quotas.get("burst") is not None and quotas.get("rate") is None:
        raise InvalidValue("expected burst only with a rate, got it alone")
    if "rate" in quotas:
        wanted = None if quotas["rate"] is None else rate(quotas["rate"])
        burst = _checked(quotas.get("burst"), "burst", 1)
        changes["interval"] = None if wanted is None else wanted.interval
        changes["burst"] = None if wanted is None else burst or wanted.count
    return msgspec.structs.replace(team, **changes)


def _checked(number: int | None, name: str, least: int) -> int | None:
    if number is not None and (isinstance(number, bool) or not isinstance(number, int) or not least <= number <= _MOST):
        raise InvalidValue(
            f"expected {name} to be a whole number from {least} to {_MOST:,}, or None, got: {shortened(number)}"
        )
    return number


def check_team(name: str) -> None:
    """Refuse what is no name of a team."""
    if not isinstance(name, str) or not _TEAM.fullmatch(name):
        raise InvalidValue(
            "expected the name of a team to be 1 to 40 lower-case letters, digits or hyphens "
            f"(beginning with a letter or digit), got: {shortened(name)}"
        )


def stored_team(name: str | None) -> str | None:
    """Return how the team called *name* is stored."""
    if name is None or name == DEFAULT_TEAM:
        return None
    check_team(name)
    return name


@overload
def full_name(team: str | None, name: str) -> str: ...
@overload
def full_name(team: str | None, name: str | None) -> str | None: ...


def full_name(team: str | None, name: str | None) -> str | None:
    """Return what *name*, of a key or a schedule, is called among those of all teams; the default team's stay bare.

    So no two teams can be in each other's way, nor learn what the other has: each name is one within its team.
    """
    if not isinstance(name, str):
        return name  # none, or what the check of a key refuses in better words
    check_bare(name)
    return name if team is None else f"@{team}/{name}"


def check_bare(name: str, what: str = "a name") -> None:
    """Refuse a name that could be taken for one with a team's before it."""
    if name.startswith("@"):
        raise InvalidValue(
            f"expected {what} that does not begin with @, which stands for a team, got: {shortened(name)}"
        )


@overload
def local_name(name: str) -> str: ...
@overload
def local_name(name: str | None) -> str | None: ...


def local_name(name: str | None) -> str | None:
    """Return what the team itself calls that which is called *name* among all."""
    return name.partition("/")[2] if name is not None and name.startswith("@") else name
