"""The audit log: what was asked for and by whom, and whether what is shown is as it was written."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from starlette.responses import Response

from mainspring.api.policy import needs
from mainspring.documents.audit import record_document
from mainspring.errors import InvalidValue
from mainspring.model.audit import BEGINNING, Record
from mainspring.model.token import Role
from mainspring.web.pages import Pages, Visit

pages = Pages()

_PAGE = 50
_MOST_DIGITS = 18


@pages.get("/audit", needs(Role.ADMIN))
def list_records(visit: Visit) -> Response:
    """Show a page of the log, the last entry first."""
    found = visit.caller.reach.audit.list(before=_before(visit), limit=_PAGE + 1)
    shown = found[:_PAGE]
    whole = visit.caller.reach is visit.caller.whole
    return visit.show(
        "audit.html",
        records=[(record, record_document(record)["details"]) for record in shown],
        older=shown[-1].seq if len(found) > _PAGE else None,
        newest=not visit.asked("before"),
        whole=whole,
        broken=_broken(found) if whole else None,
    )


def _before(visit: Visit) -> int | None:
    text = visit.asked("before")
    if text and not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise InvalidValue(f"expected before to be the number of an entry, got: {text[:50]!r}")
    return int(text) if text else None


def _broken(found: Sequence[Record]) -> int | None:
    """Return the number of the first entry, of those on this page, that does not follow the one before it.

    To look at the whole log takes the longer the longer it is. That of a page is little, and its entries are those that
    somebody reads.
    """
    for newer, older in pairwise(found):
        if newer.seq != older.seq + 1 or not newer.follows(older.hash):
            return newer.seq
    last = found[-1] if 0 < len(found) <= _PAGE else None  # and so the first of all
    return last.seq if last is not None and (last.seq != 1 or not last.follows(BEGINNING)) else None
