"""Links: which parents a job waits for, and what it does when one of them ends badly."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from enum import StrEnum
from uuid import UUID

import msgspec

from mainspring.errors import InvalidValue, did_you_mean
from mainspring.model.text import shortened

MOST_PARENTS = 10_000
"""Parents that one job may have; what gathers more is a map."""


class IfFailed(StrEnum):
    """What becomes of a job when a parent of it failed, was cancelled or expired."""

    CANCEL = "cancel"  # it is cancelled
    RUN = "run"  # it runs anyway
    WAIT = "wait"  # it waits until somebody has replayed the parent


class Edge(msgspec.Struct, frozen=True, array_like=True):
    """A parent, and what becomes of the child when that ends badly."""

    parent: UUID
    if_failed: IfFailed = IfFailed.CANCEL


class Links(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is kept with a child of its beginnings: its parents, and how long after them it may start."""

    parents: tuple[Edge, ...]
    expires: timedelta | None = None


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Links)


def encode_links(parents: Sequence[Edge], expires: timedelta | None) -> str:
    """Return links as they are stored."""
    return _encoder.encode(Links(tuple(parents), expires)).decode()


def decode_links(text: str) -> Links:
    """Return the links that are stored as *text*."""
    return _decoder.decode(text)


def check_parents(job_id: UUID, parents: Sequence[Edge]) -> None:
    """Refuse parents that a job can't have."""
    if len(parents) > MOST_PARENTS:
        raise InvalidValue(
            f"expected a job to have at most {MOST_PARENTS:,} parents, got {len(parents):,}; gather them with map"
        )
    if len({edge.parent for edge in parents}) < len(parents):
        raise InvalidValue("expected each parent of a job to be named once, got one twice")
    # Ids grow with time, and a child is made after its parents: so no circle can close, and whoever locks a family in
    # the order of ids locks parents first.
    if any(edge.parent >= job_id for edge in parents):
        raise InvalidValue(
            f"expected the parents of job {job_id} to be older than it, got a younger one, or itself: "
            "in a circle nobody could begin"
        )


def if_failed_of(value: IfFailed | str) -> IfFailed:
    """Return what *value* says."""
    if value not in tuple(IfFailed):
        hint = did_you_mean(str(value), IfFailed)
        raise InvalidValue(f"expected if_failed to be one of {', '.join(IfFailed)}, got: {shortened(value)}{hint}")
    return IfFailed(value)
