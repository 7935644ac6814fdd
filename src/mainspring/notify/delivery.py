"""Delivery: what a process needs to send notifications, as its operator has set it up."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import quote

from mainspring.errors import InvalidValue, Undelivered
from mainspring.model.channel import REFERENCE
from mainspring.model.text import shortened
from mainspring.outbound import Outbound

SMTP, MAIL_FROM, BASE_URL = "MAINSPRING_SMTP", "MAINSPRING_MAIL_FROM", "MAINSPRING_BASE_URL"

_BASE = re.compile(r"https?://[^\s/?#@]+(/[^\s?#]*)?")

Secret = Callable[[str, str], str]
"""Returns the secret of a team with a name, or raises why it can't."""


def _no_secrets(team: str, name: str) -> str:
    raise Undelivered(f"secret {REFERENCE}{name} of team {team} can't be resolved by this worker")


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """Where mail goes, whom it is from, what links begin with, the way out for requests, and who knows secrets."""

    smtp: str | None = field(default=None, repr=False)  # it may hold a password
    mail_from: str | None = None
    base_url: str | None = None
    outbound: Outbound = field(default_factory=Outbound.configured)
    secret: Secret = field(default=_no_secrets, repr=False)

    def knowing(self, secret: Secret) -> Delivery:
        """Return the same with *secret* to resolve references by, unless it has such a one."""
        return replace(self, secret=secret) if self.secret is _no_secrets else self

    @classmethod
    def configured(cls) -> Delivery:
        """Return what the environment of this process says."""
        smtp, mail_from, base_url = (os.environ.get(name) or None for name in (SMTP, MAIL_FROM, BASE_URL))
        return cls(smtp=smtp, mail_from=mail_from, base_url=base_url)

    def check_base_url(self) -> None:
        """Refuse what no link can begin with."""
        if self.base_url is not None and not _BASE.fullmatch(self.base_url):
            raise InvalidValue(
                f"expected {BASE_URL} to be like https://jobs.example.org, got: {shortened(self.base_url)}"
            )

    def links(self, notice: Mapping[str, object]) -> dict[str, str]:
        """Return where people find what *notice* is about; nothing unless it is known where they look."""
        if self.base_url is None:
            return {}
        base = self.base_url.rstrip("/")
        places = {"job": ("jobs", notice.get("job_id")), "schedule": ("schedules", notice.get("schedule"))}
        return {
            name: f"{base}/{place}/{quote(told, safe='')}"
            for name, (place, told) in places.items()
            if isinstance(told, str)
        }

    def secrets(self, team: str, named: tuple[str, ...]) -> list[str]:
        """Return secrets as they are, having resolved those that are references."""
        return [self.secret(team, one.removeprefix(REFERENCE)) if one.startswith(REFERENCE) else one for one in named]
