"""Why an attempt failed."""

from __future__ import annotations

import msgspec

from mainspring.model.text import cut, storable

_LONGEST_MESSAGE = 10_000
_LONGEST_TRACEBACK = 40_000


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why an attempt failed, as it is kept with the job. Failures of one cause share a fingerprint."""

    type: str
    message: str
    traceback: str | None = None
    fingerprint: str | None = None

    def __post_init__(self) -> None:
        # An exception may quote anything, such as a file name that is not valid Unicode, or a whole file.
        msgspec.structs.force_setattr(self, "type", storable(self.type))
        msgspec.structs.force_setattr(self, "message", storable(cut(self.message, _LONGEST_MESSAGE)))
        if self.traceback is not None:
            msgspec.structs.force_setattr(self, "traceback", storable(cut(self.traceback, _LONGEST_TRACEBACK)))
