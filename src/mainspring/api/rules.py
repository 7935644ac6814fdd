"""Rules of alerts from JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, StrictInt

from mainspring.api.documents import Duration, Name, Request
from mainspring.model.alert import (
    Rule,
    age,
    dead,
    depth,
    error_rate,
    lag,
    missed_schedules,
    missing_workers,
    stuck,
)

Jobs = Annotated[StrictInt, Field(ge=0, le=1_000_000)]
AtLeastOne = Annotated[StrictInt, Field(ge=1, le=1_000_000)]
Share = Annotated[float, Field(ge=0, lt=1, strict=True, allow_inf_nan=False)]


class StuckRequest(Request):
    """Jobs have been running for longer than they should."""

    kind: Literal["stuck"]
    longer_than: Duration | None = None
    queue: Name | None = None
    task: Name | None = None


class LagRequest(Request):
    """What is due is not made ready in time."""

    kind: Literal["lag"]
    above: Duration | None = None


class DepthRequest(Request):
    """Too many jobs of a queue are ready and wait for a worker."""

    kind: Literal["depth"]
    queue: Name
    above: Jobs | None = None


class AgeRequest(Request):
    """A job of a queue has been ready for too long."""

    kind: Literal["age"]
    queue: Name
    above: Duration | None = None


class ErrorRateRequest(Request):
    """Too large a share of the jobs that have ended lately have failed for good."""

    kind: Literal["error_rate"]
    above: Share | None = None
    over: Duration | None = None
    at_least: AtLeastOne | None = None
    queue: Name | None = None
    task: Name | None = None


class DeadRequest(Request):
    """Jobs have failed for good lately."""

    kind: Literal["dead"]
    above: Jobs | None = None
    over: Duration | None = None


class MissingWorkersRequest(Request):
    """Too few workers serve a queue, or any queue in which jobs are ready."""

    kind: Literal["missing_workers"]
    queue: Name | None = None
    fewer_than: AtLeastOne | None = None


class MissedSchedulesRequest(Request):
    """A schedule has had no success in time, or missed ticks lately."""

    kind: Literal["missed_schedules"]
    over: Duration | None = None


AnyRequest = (
    StuckRequest
    | LagRequest
    | DepthRequest
    | AgeRequest
    | ErrorRateRequest
    | DeadRequest
    | MissingWorkersRequest
    | MissedSchedulesRequest
)
RuleRequest = Annotated[AnyRequest, Field(discriminator="kind")]

_MAKERS: Mapping[str, Callable[..., Rule]] = {
    "stuck": stuck,
    "lag": lag,
    "depth": depth,
    "age": age,
    "error_rate": error_rate,
    "dead": dead,
    "missing_workers": missing_workers,
    "missed_schedules": missed_schedules,
}


def rule(wanted: AnyRequest) -> Rule:
    """Return the rule that *wanted* describes; of what it does not say, what is the usual."""
    said: dict[str, Any] = wanted.model_dump(exclude_none=True)
    return _MAKERS[said.pop("kind")](**said)
