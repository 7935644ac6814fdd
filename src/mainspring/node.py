"""A node: what one process does for the fleet, which is to work and to sweep."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import TypedDict

from mainspring.builtin import builtin_tasks
from mainspring.client import Client
from mainspring.errors import InvalidValue, StoreGone, check_known
from mainspring.model.duration import Duration, duration
from mainspring.model.job import NOTIFY_QUEUE
from mainspring.model.session import DEFAULT_LEASE
from mainspring.model.task import Registry, Task
from mainspring.notify import Delivery
from mainspring.scheduler import Scheduler
from mainspring.scheduler.prune import RETENTION, retention
from mainspring.signals import on_stop_signal
from mainspring.store import Store, open_store
from mainspring.store.open import DEADLINE
from mainspring.worker.capture import DEFAULT_CAPTURE, capture_level
from mainspring.worker.worker import Settings, Surroundings, Worker

DEFAULT_GRACE = "30s"
_LAST_SWEEPS = 5.0

log = logging.getLogger("mainspring.worker")


class NodeSettings(TypedDict, total=False):
    """How a node works. It serves the queues of its tasks unless it is told which, and by what weight.

    `commands` are the programs that jobs of `mainspring.command` may run, by name or by the folder that they are in.
    `delivery` is how notifications leave, which every node sends; by default, what the environment says.
    """

    concurrency: int
    queues: Mapping[str, int]
    lease: Duration
    grace: Duration
    retention: Duration
    commands: Sequence[str]
    capture_logs: str
    delivery: Delivery


class Node:
    """A worker and a scheduler on the threads of this process."""

    def __init__(
        self, client: Client, tasks: Registry, settings: NodeSettings, prepare: Callable[[], None] | None = None
    ) -> None:
        """*prepare* is called when the database can be used, before any work begins."""
        check_known(settings, NodeSettings)
        lease = duration(settings.get("lease", DEFAULT_LEASE), "lease")
        self._grace = duration(settings.get("grace", DEFAULT_GRACE), "grace").total_seconds()
        self._retention = retention(settings.get("retention", RETENTION))
        self._builtin = builtin_tasks(settings, client.secret)
        self.queues = settings.get("queues") or self._queues_of(tasks)  # each with its weight; it tells people besides
        self._settings = Settings(
            queues={NOTIFY_QUEUE: 1, **self.queues},
            commands=settings.get("commands", ()),
            url=client.url,
            concurrency=_concurrency(settings.get("concurrency", 8)),
            lease=lease,
            capture=capture_level(settings.get("capture_logs", DEFAULT_CAPTURE)),
        )
        self._client = client
        self._tasks = tasks
        self._prepare = prepare
        self._told_queues = bool(settings.get("queues"))
        self._unserved: set[str] = set()
        self._opened = ExitStack()
        self.worker: Worker | None = None
        self._stopping: Worker | None = None
        self._at_once = False
        self.asked = threading.Event()  # set when it is to stop
        self.gone: StoreGone | None = None

    def start(self) -> None:
        """Begin to work, on threads of its own. One that can't leaves nothing open."""
        with ExitStack() as opened:
            store, beats = self._open_stores(opened)
            if self._prepare is not None:
                self._prepare()
            scheduler = Scheduler(store, self._retention)
            opened.callback(scheduler.close, _LAST_SWEEPS)
            given = Surroundings(
                store=store,
                beats=beats,
                keys=self._client.keys,
                tally=self._client.home.tally,
                new_ids=self._client.new_ids,
                heard=scheduler.heard,
                gone=self._lose_store,
            )
            worker = Worker(given, opened.enter_context(self._tasks.served_with(self._builtin)), self._settings)
            try:
                worker.start()
                scheduler.start()
            except BaseException:
                worker.stop(0)
                raise
            opened.enter_context(self._tasks.followed_by(self._warn_of_late))
            self.worker, self._opened = worker, opened.pop_all()

    def stop(self) -> bool:
        """Let what has started end, and stop; return whether all of it was settled. A second call does nothing."""
        worker, self.worker = self.worker, None
        if worker is None:
            return True
        self._stopping = worker
        if self._at_once:  # said when there was no worker yet to say it to
            worker.stop_now()
        with self._opened:
            try:
                return worker.stop(self._grace)
            except KeyboardInterrupt:  # somebody is impatient, where signals are not ours
                worker.stop(0)
                raise

    def stop_now(self) -> None:
        """Cut `stop` short, also one that is yet to come."""
        self._at_once = True
        worker = self.worker or self._stopping
        if worker is not None:
            worker.stop_now()

    def _queues_of(self, tasks: Iterable[Task]) -> dict[str, int]:
        return dict.fromkeys(sorted({task.queue for task in [*tasks, *self._builtin]} - {NOTIFY_QUEUE}), 1)

    def _warn_of_late(self, task: Task) -> None:
        """Say so when *task* came too late for its queue to be served, unless it was said which queues to serve."""
        if not self._told_queues and task.queue not in {*self.queues, *self._unserved}:
            self._unserved.add(task.queue)
            log.warning(
                "the worker does not serve queue %s, because task %s was registered after it had started; "
                "register it before, or tell the worker its queues",
                task.queue,
                task.name,
            )

    def _lose_store(self, gone: StoreGone) -> None:
        log.error("can't go on: %s", gone)
        self.gone = gone
        self.asked.set()

    def _open_stores(self, opened: ExitStack) -> tuple[Store, Store]:
        """Return the store to work with and the one for beats.

        On SQLite, which has one writer at a time, both are the app's own, so that a job enqueued in this process is
        heard of at once. On PostgreSQL each has connections of its own: no flood of jobs makes a beat wait.
        """
        if self._client.url.startswith("sqlite"):
            store = opened.enter_context(self._client.lend())
            return store, store
        beats_within = self._settings.lease.total_seconds() / 3
        return opened.enter_context(self._open(DEADLINE)), opened.enter_context(self._open(beats_within))

    def _open(self, deadline: float) -> closing[Store]:
        return closing(open_store(self._client.url, clock=self._client.given_clock, deadline=deadline))


def run_until_signalled(node: Node, *, again: bool = True) -> bool:
    """Run *node* until SIGTERM or SIGINT, and return whether all that it had started was settled.

    It raises StoreGone when the database was deleted meanwhile: whoever keeps the process alive can start it anew.

    A second signal cuts the stopping short. Not so with *again* false, for a process whose signals may be one and the
    same request, made by several.
    """

    def ask() -> None:
        if again and node.asked.is_set():
            log.info("stopping at once: what still runs goes back to its queue")
            node.stop_now()
        node.asked.set()

    with on_stop_signal(ask):
        node.start()
        node.asked.wait()
        log.info("stopping: what has started may end%s", "; another signal stops at once" if again else "")
        settled = node.stop()
    if node.gone is not None:
        raise node.gone
    return settled


def _concurrency(wanted: int) -> int:
    if isinstance(wanted, bool) or not isinstance(wanted, int) or not 1 <= wanted <= 10_000:
        raise InvalidValue(f"expected concurrency to be a whole number from 1 to 10,000, got: {wanted!r}")
    return wanted
