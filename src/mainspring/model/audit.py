"""Audit: what was asked for by whom, as a chain in which nothing can be changed or left out unnoticed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from hashlib import sha256
from uuid import UUID

import msgspec

from mainspring.errors import InvalidValue
from mainspring.model.team import check_team
from mainspring.model.text import shortened, storable

BEGINNING = "0" * 64
"""What stands in place of a hash before the first entry."""

_ACTION = re.compile(r"[a-z_]{1,40}\.[a-z_]{1,40}")
_LONGEST_WORDS = 500
_LONGEST_DETAILS = 4_000

_encoder = msgspec.json.Encoder(order="deterministic")


class Entry(msgspec.Struct, frozen=True):
    """What somebody asks for: `Entry("ada@desk", "queue.pause", "mail", team="acme")`.

    *details* is what else there is to say, as JSON, and no secret. What is too long is cut: it must not be the reason
    that nothing is on record.
    """

    actor: str
    action: str
    target: str | None = None
    team: str | None = None  # by its name; None stands for what is no team's
    details: Mapping[str, object] = {}

    def __post_init__(self) -> None:
        if not isinstance(self.actor, str) or not self.actor.strip():
            raise InvalidValue(f"expected actor to say who asks, got: {shortened(self.actor)}")
        if not isinstance(self.action, str) or not _ACTION.fullmatch(self.action):
            raise InvalidValue(
                f"expected action to be a thing and a verb, such as 'job.cancel', got: {shortened(self.action)}"
            )
        if self.target is not None and not isinstance(self.target, str):
            raise InvalidValue(f"expected target to be text, got: {shortened(self.target)}")
        if self.team is not None:
            check_team(self.team)
        if not isinstance(self.details, Mapping):
            raise InvalidValue(f"expected details to be a mapping, got: {shortened(self.details)}")


class Record(msgspec.Struct, frozen=True):
    """An entry as it is kept. The fields stand in the order of every query's columns."""

    seq: int  # from 1 on, without a gap
    id: UUID
    at: datetime
    actor: str
    team: str | None
    action: str
    target: str | None
    details: str  # as JSON
    hash: str  # over all this, and the hash before it

    def follows(self, previous: str) -> bool:
        """Return whether it is as it was when it was written after an entry with the hash *previous*."""
        return self.hash == _hash(previous, self)


class Head(msgspec.Struct, frozen=True):
    """Where the chain ends: how many entries there are, and the hash of the last."""

    entries: int
    hash: str


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What came of looking at the whole chain. If it is broken, `broken` is the first entry that does not fit."""

    entries: int  # that fit, from the first on
    broken: int | None = None
    why: str | None = None

    @property
    def whole(self) -> bool:
        """Whether nothing was changed, removed or put in between."""
        return self.broken is None


def extend(head: Head, entries: Iterable[tuple[UUID, Entry]], at: datetime) -> tuple[list[Record], Head]:
    """Return *entries* as they are written behind *head*, and where the chain ends then."""
    records: list[Record] = []
    for entry_id, entry in entries:
        bare = Record(
            head.entries + 1,
            entry_id,
            at,
            _short(entry.actor),
            entry.team,
            entry.action,
            None if entry.target is None else _short(entry.target),
            _told(entry.details),
            "",
        )
        records.append(msgspec.structs.replace(bare, hash=_hash(head.hash, bare)))
        head = Head(bare.seq, records[-1].hash)
    return records, head


class Check:
    """A walk along the chain, from its beginning, some records at a time."""

    def __init__(self) -> None:
        self.head = Head(0, BEGINNING)
        self.verdict: Verdict | None = None

    def see(self, records: Iterable[Record]) -> None:
        """Look at the next *records*; those behind one that does not fit are of no interest."""
        for record in records:
            if self.verdict is not None:
                return
            if record.seq != self.head.entries + 1:
                self._break(f"entry {self.head.entries + 1} is missing")
            elif not record.follows(self.head.hash):
                self._break(f"entry {record.seq} is not as it was written")
            else:
                self.head = Head(record.seq, record.hash)

    def end(self, head: Head | None) -> Verdict:
        """Return the verdict: no records are left, and *head* is where the chain ends by what is kept beside it."""
        if self.verdict is None and head != self.head:
            if head is None:
                self._break("it is not known any more where the chain ends")
            elif head.entries > self.head.entries:
                self._break(f"{head.entries - self.head.entries:,} entries are missing at the end")
            else:
                self._break("the chain ends elsewhere by what was kept of its end")
        return self.verdict or Verdict(entries=self.head.entries)

    def _break(self, why: str) -> None:
        self.verdict = Verdict(entries=self.head.entries, broken=self.head.entries + 1, why=why)


def _hash(previous: str, record: Record) -> str:
    told = (previous, *msgspec.structs.astuple(record)[:-1])
    return sha256(_encoder.encode(told)).hexdigest()


def _short(words: str) -> str:
    words = storable(words)
    return words if len(words) <= _LONGEST_WORDS else f"{words[: _LONGEST_WORDS - 1]}…"


def _told(details: Mapping[str, object]) -> str:
    try:
        text = _encoder.encode(details).decode()
    except (TypeError, ValueError) as error:
        raise InvalidValue(f"expected details to be JSON: {error}") from None
    if len(text) <= _LONGEST_DETAILS:
        return text
    return _encoder.encode({"begins": text[: _LONGEST_DETAILS // 2]}).decode()
