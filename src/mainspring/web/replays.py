"""Replays of dead letters that go on when the form that asked for them is answered.

What they have done is in the database alone: one that ended with its server is gone on with by asking for it again.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable

from mainspring.api.problems import Problem
from mainspring.errors import MainspringError
from mainspring.model.dead import Replayed
from mainspring.replay import Halt, Progress

Work = Callable[[Progress, Halt], Replayed]

_MOST = 4
"""At once: each has a thread for as long as it takes, which without a worker is for ever."""

_REMEMBERED = 100
_LAST = 5.0

log = logging.getLogger("mainspring.web")


class UnderWay:
    """One replay, under way or over."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._why: str | None = None
        self.report: Replayed | None = None  # how far it is, as soon as it is known how far it has to go
        self.error: str | None = None
        self._thread = threading.Thread(target=self._run, name="mainspring-replay", daemon=True)
        self._thread.start()

    @property
    def over(self) -> bool:
        return not self._thread.is_alive()

    def stop(self, why: str) -> None:
        """Have it replay no more; what it has replayed goes on by itself."""
        self._why = why

    def wait(self, patience: float) -> None:
        """Wait until it is over, for *patience* seconds at most."""
        self._thread.join(patience)

    def _run(self) -> None:
        try:
            self.report = self._work(self._tell, lambda: self._why)
        except MainspringError as error:
            self.error = str(error)
        except Exception:
            log.exception("a replay of dead letters failed in a way that it should not")
            self.error = "it ended early; the log of the server says why"

    def _tell(self, report: Replayed) -> None:
        self.report = report


class Replays:
    """The replays of a server: of each group of a team one at a time, and of the last ones what came of them."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], UnderWay] = OrderedDict()
        self._lock = threading.Lock()

    def start(self, team: str, group: str, work: Work) -> UnderWay:
        """Have *work* done in a thread of its own, unless there is enough of that."""
        with self._lock:
            busy = [key for key, one in self._known.items() if not one.over]
            if (team, group) in busy:
                raise Problem(409, "under-way", "expected one replay of a group at a time, got another; stop it first")
            if len(busy) >= _MOST:
                raise Problem(429, "too-many", f"expected at most {_MOST} replays at once, got more; let one end")
            self._known.pop((team, group), None)
            made = self._known[team, group] = UnderWay(work)
            for key in [key for key, one in self._known.items() if one.over][:-_REMEMBERED]:
                del self._known[key]
        return made

    def get(self, team: str, group: str) -> UnderWay | None:
        """Return the last replay of the group, if this server has seen one."""
        with self._lock:
            return self._known.get((team, group))

    def close(self) -> None:
        """Stop all that are under way, and wait for them a little."""
        with self._lock:
            left = [one for one in self._known.values() if not one.over]
        for one in left:
            one.stop("the server has stopped")
        for one in left:
            one.wait(_LAST)
