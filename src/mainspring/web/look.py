"""How pages look: templates in which everything is escaped, and how values are written for people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from mainspring import __version__
from mainspring.api.policy import Policy
from mainspring.clock import SystemClock
from mainspring.model.queue import jobs_in
from mainspring.model.span import coarse, span

_clock = SystemClock()
_LONGEST_VALUE = 20_000
_WIDTH = 80
_NONE = "\N{EN DASH}"
_TURNS = {code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}


def render(template: str, **values: object) -> str:
    """Return the page that *template* makes of *values*."""
    return _environment.get_template(template).render(now=_clock.now(), version=__version__, **values)


def ago(moment: datetime | None) -> str:
    """Return how long ago *moment* was, or how long it is to it."""
    if moment is None:
        return _NONE
    seconds = (_clock.now() - moment).total_seconds()
    if abs(seconds) < 1:
        return "now"
    return f"{coarse(seconds)} ago" if seconds > 0 else f"in {coarse(-seconds)}"


def exact(moment: datetime | None) -> str:
    """Return *moment* to the second, in UTC."""
    return "" if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def picked(moment: datetime | None) -> str:
    """Return *moment* as a field has it in which a time is picked, in UTC."""
    return "" if moment is None else f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M}"


def lasting(length: timedelta | float | None) -> str:
    if length is None:
        return _NONE
    return span(length if isinstance(length, timedelta) else timedelta(seconds=length))


def short(job_id: UUID | str) -> str:
    """Return the end of an id, which differs where the beginning is the time."""
    return str(job_id)[-8:]


def pretty(value: Any) -> str:
    """Return *value* as JSON, over several lines if one is not enough, as much of it as anybody reads."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    if len(text) > _WIDTH:
        text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}\n… ({len(text):,} characters in all)"


def figure(number: float | None) -> str:
    """Return a number as people read it."""
    if number is None:
        return _NONE
    return f"{number:,.0f}" if float(number).is_integer() else f"{number:,.2f}"


def offer(pages: Mapping[str, Policy]) -> None:
    """Have these *pages*, by address, among those that every page leads to whoever may see them."""
    _environment.globals["pages_there"] = pages


def straight(value: object) -> object:
    """Return *value* without what turns the direction of writing: what follows it could pass for something else."""
    return value.translate(_TURNS) if isinstance(value, str) and not isinstance(value, Markup) else value


_environment = Environment(
    loader=PackageLoader("mainspring.web"),
    autoescape=True,
    finalize=straight,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_environment.filters.update(
    {
        "ago": ago,
        "exact": exact,
        "lasting": lasting,
        "short": short,
        "pretty": pretty,
        "figure": figure,
        "jobs_in": jobs_in,
        "picked": picked,
    }
)
