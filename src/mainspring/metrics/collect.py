"""Collect: metrics of the fleet, as the database sees it, and of the workers in this process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from mainspring.metrics.labels import Labels
from mainspring.metrics.look import Look, View
from mainspring.model.job import UNFINISHED, JobState
from mainspring.model.task import Registry
from mainspring.tally import SECONDS, Histogram, Tally

_FAILURES = ("failed", "timed_out", "lost")


class AppCollector(Collector):
    """Says what is known of one app when it is asked."""

    def __init__(self, look: Look, tally: Tally, tasks: Registry) -> None:
        self._look = look
        self._tally = tally
        self._tasks = tasks
        self._queues = Labels()
        self._task_names = Labels()

    def describe(self) -> Iterable[Metric]:
        """Say nothing: to register must not ask the database."""
        return ()

    def collect(self) -> Iterator[Metric]:
        view = self._look.view()
        yield GaugeMetricFamily("mainspring_database_up", "Whether the database answers.", value=int(view is not None))
        self._learn(view)
        if view is not None:
            yield from _fleet(view)
            yield from self._of_queues(view)
        with self._tally.lock:
            local = [*self._of_jobs(), *self._of_work()]
        yield from local

    def _learn(self, view: View | None) -> None:
        """Tell apart the queues that the code or an operator names from those that only a job does."""
        named = {task.queue for task in self._tasks}
        owned: Mapping[str, str] = {}
        if view is not None:
            named.update(one.name for one in view.queues if one.workers or one.pause or one.ageing)
            owned = view.owners
        self._queues.learn(named, owned)
        with self._tally.lock:
            self._queues.learn(self._tally.runs, owned)
            self._task_names.learn(task for task, _ in self._tally.attempts)

    def _of_queues(self, view: View) -> Iterator[Metric]:
        jobs: Counter[tuple[str, str]] = Counter()
        ages: dict[str, float] = {}
        paused: dict[str, int] = {}
        for queue in view.queues:
            name = self._queues.of(queue.name)
            # None is told as well: a series that vanishes makes rules and graphs go on with what it said last.
            jobs.update({(name, state.value): queue.jobs.get(state, 0) for state in UNFINISHED})
            age = queue.oldest_ready.total_seconds() if queue.oldest_ready else 0.0
            ages[name] = max(age, ages.get(name, 0.0))
            paused[name] = max(int(queue.paused), paused.get(name, 0))
        depth = GaugeMetricFamily("mainspring_queue_jobs", "Unfinished jobs.", labels=["queue", "state"])
        for (name, state), count in jobs.items():
            depth.add_metric([name, state], count)
        yield depth
        yield _by("mainspring_queue_oldest_ready_seconds", "How long the job has waited that is ready longest.", ages)
        yield _by("mainspring_queue_paused", "Whether the queue is paused.", paused)

    def _of_jobs(self) -> Iterator[Metric]:
        tally = self._tally
        yield self._histograms("mainspring_wait_seconds", "From when a job was due until it started.", tally.waits)
        yield self._histograms("mainspring_run_seconds", "How long attempts took.", tally.runs)
        attempts, failures = self._counters(tally.attempts), Counter[tuple[str, ...]]()
        for (task, outcome), count in attempts.items():
            failures[task,] += count if outcome in _FAILURES else 0
        yield _counted("mainspring_attempts", "Attempts by what they came to.", ["task", "outcome"], attempts)
        yield _counted("mainspring_failures", "Attempts that failed, timed out or were lost.", ["task"], failures)
        finished = self._counters(tally.finished)
        yield _counted("mainspring_jobs_finished", "Jobs by how they ended.", ["task", "state"], finished)

    def _of_work(self) -> Iterator[Metric]:
        tally = self._tally
        for name, said, sizes in (
            ("mainspring_claim_batch_jobs", "Jobs claimed at once.", tally.claims),
            ("mainspring_settle_batch_jobs", "Jobs settled at once.", tally.settles),
        ):
            metric = HistogramMetricFamily(name, said)
            _add(metric, [], sizes)
            yield metric
        yield _counted("mainspring_lease_renewals", "Beats by outcome.", ["outcome"], _alone(tally.renewals))
        yield _counted("mainspring_database_errors", "Calls that failed.", ["step"], _alone(tally.errors))

    def _histograms(self, name: str, said: str, by_queue: Mapping[str, Histogram]) -> Metric:
        merged: dict[str, Histogram] = {}
        for queue, histogram in by_queue.items():
            merged.setdefault(self._queues.of(queue), Histogram(SECONDS)).merge(histogram)
        metric = HistogramMetricFamily(name, said, labels=["queue"])
        for queue, histogram in merged.items():
            _add(metric, [queue], histogram)
        return metric

    def _counters(self, counts: Mapping[tuple[str, str], int]) -> Counter[tuple[str, ...]]:
        told: Counter[tuple[str, ...]] = Counter()
        for (task, came_to), count in counts.items():
            told[self._task_names.of(task), came_to] += count
        return told


def _fleet(view: View) -> Iterator[Metric]:
    running = sum(queue.jobs.get(JobState.RUNNING, 0) for queue in view.queues)
    for name, said, value in (
        ("mainspring_database_round_trip_seconds", "How long the smallest question took.", view.round_trip),
        ("mainspring_schedule_lag_seconds", "How late the schedule is that should have fired first.", view.lags.fire),
        ("mainspring_promote_lag_seconds", "How late the job is that should have become ready.", view.lags.promote),
    ):
        yield GaugeMetricFamily(name, said, value=value.total_seconds())
    for name, said, number in (
        ("mainspring_running_jobs", "Jobs that run.", running),
        ("mainspring_dead_letters", "Jobs that failed for good and are kept.", view.dead_letters),
        ("mainspring_schema_version", "The version of the tables.", view.version),
    ):
        yield GaugeMetricFamily(name, said, value=number)
    yield _by("mainspring_workers", "Workers.", {"alive": view.workers, "lost": view.lost_workers}, label="state")


def _alone(counts: Mapping[str, int]) -> dict[tuple[str, ...], int]:
    return {(name,): count for name, count in counts.items()}


def _by(name: str, said: str, values: Mapping[str, float], label: str = "queue") -> Metric:
    metric = GaugeMetricFamily(name, said, labels=[label])
    for one, value in values.items():
        metric.add_metric([one], value)
    return metric


def _counted(name: str, said: str, labels: list[str], counts: Mapping[tuple[str, ...], int]) -> Metric:
    metric = CounterMetricFamily(name, said, labels=labels)
    for values, count in counts.items():
        metric.add_metric(list(values), count)
    return metric


def _add(metric: HistogramMetricFamily, labels: list[str], histogram: Histogram) -> None:
    buckets, total = [], 0
    for bound, count in zip([*map(str, histogram.bounds), "+Inf"], histogram.counts, strict=True):
        total += count
        buckets.append((bound, total))
    metric.add_metric(labels, buckets, histogram.total)
