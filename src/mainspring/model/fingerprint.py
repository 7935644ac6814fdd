"""Which failures have one cause."""

from __future__ import annotations

import re
from hashlib import sha256

_VARYING = re.compile(
    r"0x[0-9a-fA-F]+"  # addresses
    r"|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"  # ids
    r"|\b[0-9a-fA-F]{16,}\b"  # hashes
    r"|\d+(?:\.\d+)*"  # numbers, instants, addresses of hosts
    r"|'[^']*'|\"[^\"]*\""  # values that were quoted
)
_BEGINNING = 1_000


def fingerprint(task: str, kind: str, message: str, where: str) -> str:
    """Return what failures of *task* with one cause have in common.

    *kind* is the type of the exception and *where* the deepest place in the user's own code. What varies in a
    message from job to job, such as numbers, ids and quoted values, plays no part.
    """
    masked = _VARYING.sub("#", message[:_BEGINNING])
    return sha256("\0".join((task, kind, masked, where)).encode(errors="replace")).hexdigest()[:16]
