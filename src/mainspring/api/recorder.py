"""Recording what is asked for, before it is done: requests that come together share one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future

from mainspring.app import Mainspring
from mainspring.batches import Batches
from mainspring.model.audit import Entry


class Recorder:
    """Writes entries of the audit log for all requests of a server."""

    def __init__(self, app: Mainspring) -> None:
        self._app = app
        self._batches: Batches[Entry, None] = Batches("audit", self._write)
        self.start, self.close = self._batches.start, self._batches.close

    def record(self, entry: Entry) -> Future[None]:
        """Have *entry* written; the future is done when it is kept."""
        return self._batches.ask(entry)

    def _write(self, entries: Sequence[Entry]) -> list[None]:
        self._app.audit.record(entries)
        return [None] * len(entries)
