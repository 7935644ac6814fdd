"""Heartbeat: renew the lease, hear of wishes, and compare notes with the database."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from uuid import UUID

from mainspring.clock import Clock
from mainspring.errors import CancelRequested, LeaseLost, PauseRequested, StoreError, StoreGone
from mainspring.model.job import Wish
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Returned
from mainspring.model.session import Beat
from mainspring.service import Loop
from mainspring.store import Store
from mainspring.tally import Tally
from mainspring.worker.session import WorkerSession

_ON_ITS_WAY = 20.0
"""Seconds after which a job that the database thinks is ours, and we know nothing of, is not just on its way to us."""

log = logging.getLogger("mainspring.worker")


class Heartbeat:
    """Beats on a thread and a store of its own: no flood of jobs makes it wait for a connection."""

    def __init__(
        self,
        store: Store,
        session: WorkerSession,
        clock: Clock,
        renewed: Callable[[], None],
        gone: Callable[[StoreGone], None],
        tally: Tally,
    ) -> None:
        """*renewed* is told of every new session, *gone* when there is no database any more to open one in."""
        self._store = store
        self._gone = gone
        self._session = session
        self._clock = clock
        self._renewed = renewed
        self._tally = tally
        self._astray: dict[tuple[UUID, int], float] = {}
        self.loop = Loop("heartbeat", self._beat_patiently)

    def _beat_patiently(self) -> float:
        try:
            self._beat()
        except StoreGone as error:
            self._gone(error)
            return math.inf
        except StoreError as error:
            self._tally.beat("failed")
            log.warning("can't renew the lease, trying on: %s", error)
            return self._session.beat_every / 10
        return self._session.beat_every

    def _beat(self) -> None:
        until = self._session.until
        if not self._session.alive:
            self._session.expire(until)
            self._begin_anew()
            return
        session, sent = self._session.id, self._session.beating()
        held = self._session.holding.by_id()
        beat = self._store.beat(session, {job_id: one.job.fence for job_id, one in held.items()})
        if not beat.alive:
            self._session.lose("the database had ended the lease, perhaps because this process had stood still", until)
            self._begin_anew()
            return
        self._session.renewed(session, sent)
        self._tally.beat("renewed")
        self._hear(beat)
        self._give_back_strays(beat.strays)

    def _begin_anew(self) -> None:
        self._tally.beat("lost")
        self._session.open()
        self._renewed()

    def _hear(self, beat: Beat) -> None:
        holding = self._session.holding.by_id()
        for one in holding.values():
            if isinstance(one.stop, PauseRequested) and one.job.id not in beat.wishes:
                one.go_on()  # resumed before it had stopped
        for job_id, wish in beat.wishes.items():
            held = holding.get(job_id)
            if held is not None:
                held.end(CancelRequested("cancelled") if wish is Wish.CANCEL else PauseRequested("paused"))
        for job_id, fence in beat.lost.items():
            held = holding.get(job_id)
            # It may have been settled, and even claimed anew, while the beat was on its way.
            if held is not None and held.job.fence == fence and not held.settled:
                held.end(LeaseLost(f"job {job_id} is no longer ours"))

    def _give_back_strays(self, strays: Mapping[UUID, int]) -> None:
        """Give back what the database thinks is ours and we know nothing of: the reply to its claim was lost.

        Seen for as long as a call may take, and then some: what is just being claimed or settled looks astray too.
        """
        now = self._clock.steady()
        self._astray = {(job_id, fence): self._astray.get((job_id, fence), now) for job_id, fence in strays.items()}
        for_good = [job_id for (job_id, _), since in self._astray.items() if now - since >= _ON_ITS_WAY]
        if for_good:
            jobs = self._store.get(for_good).values()
            mine = [job for job in jobs if job.fence == strays[job.id] and job.session == self._session.id]
            self._store.settle([settle(job, Returned()) for job in mine if not job.state.final])
