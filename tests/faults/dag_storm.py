"""Workflows of random shape while workers are killed and the server is restarted: `python -m tests.faults.dag_storm`.

Who ran before whom is judged by what the handlers wrote into a file, one line after the other.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from mainspring import Mainspring, Parent
from mainspring.errors import StoreError
from mainspring.model.lifecycle import MAX_LOSSES
from mainspring.store import open_store
from mainspring.task_handle import TaskHandle
from tests.faults.both_stores import on_both_stores_and_server
from tests.faults.workers import Workers
from tests.support.databases import execute, table
from tests.support.postgres import PostgresServer

LEASE = 2.0
AT_ONCE = 3
"""Workflows that are under way at the same time."""

_NUMBERS = (0, 1, 2, 3, 4, 5)
_HOW_OFTEN = (25, 35, 15, 10, 8, 7)
_NEAR = 40
"""How many of those just before it a node has its parents among, half of the time: else no chain would be long."""


class Planned(NamedTuple):
    """A node of a graph: its task, and its parents, each with what is to happen if that ends badly."""

    task: str
    parents: Mapping[int, str]


class Seen(NamedTuple):
    """How the store says that a job has ended."""

    state: str
    fence: int
    losses: int


_UNFINISHED = Seen("unfinished", 0, 0)


class Figures(NamedTuple):
    """What is counted beside the ledger."""

    kills: int
    restarts: int
    seconds: float
    left: dict[str, int]
    complaints: dict[str, int]


@dataclass(frozen=True)
class Account:
    """What a storm came to.

    `quarantined` are jobs that failed because of how many workers died under them, `again` attempts beyond the one that
    ended its job, and `late` such that began when that one had ended. `left` are rows that should be
    gone, `complaints` what workers should not have had to say. `wrong` has, for each thing that must not happen, how
    often it has, and an instance.
    """

    runs: int
    nodes: int
    states: dict[str, int]
    workflows: dict[str, int]
    quarantined: int
    again: int
    late: int
    kills: int
    restarts: int
    seconds: float
    left: dict[str, int]
    complaints: dict[str, int]
    wrong: dict[str, str]

    @property
    def balanced(self) -> bool:
        all_there = sum(self.states.values()) == self.runs * self.nodes and sum(self.workflows.values()) == self.runs
        return all_there and not any(self.left.values()) and not self.complaints and not self.wrong


# What is planned.


def graph(seed: int, nodes: int) -> list[Planned]:
    """Return a random graph, the same for the same *seed*. In each third one nothing fails for good."""
    dice = random.Random(seed)
    tasks, chances = ("sound", "shaky", "doomed"), (86, 8, 6 if seed % 3 else 0)
    planned: list[Planned] = []
    for node in range(nodes):
        earlier = range(max(0, node - _NEAR) if dice.random() < 0.5 else 0, node)
        number = min(len(earlier), dice.choices(_NUMBERS, _HOW_OFTEN)[0])
        parents = {parent: dice.choice(("cancel", "run")) for parent in sorted(dice.sample(earlier, number))}
        planned.append(Planned(dice.choices(tasks, chances)[0], parents))
    return planned


def enqueue(app: Mainspring, run: int, planned: Sequence[Planned]) -> tuple[UUID, list[UUID]]:
    """Enqueue the graph as a workflow; return its id, and those of its nodes."""
    with app.workflow(f"run-{run}", key=f"run-{run}") as wf:
        made: list[Any] = []
        for node, (task, parents) in enumerate(planned):
            after = [Parent(made[parent], if_failed="run") for parent, policy in parents.items() if policy == "run"]
            handle = TaskHandle[..., int](app.client, app.tasks.to_send(task)).using(after=after)
            made.append(wf.add(handle, run, node, [made[parent] for parent in parents]))
    return wf.enqueue().id, [node.id for node in made]


# What is to come of it.


def outcomes(planned: Sequence[Planned], quarantined: set[int]) -> list[str]:
    """Return the state in which each node has to end, given those that cost too many workers their life."""
    states: list[str] = []
    for node, (task, parents) in enumerate(planned):
        if any(policy == "cancel" and states[parent] != "succeeded" for parent, policy in parents.items()):
            states.append("cancelled")
        else:
            states.append("failed" if task == "doomed" or node in quarantined else "succeeded")
    return states


class Ledger:
    """What the handlers of one run wrote: the places of their lines, by node and fence."""

    def __init__(self, lines: Sequence[tuple[int, list[str]]]) -> None:
        self.begins: dict[int, list[tuple[int, int]]] = defaultdict(list)  # by node: place and fence
        self.ends: dict[tuple[str, int, int], int] = {}  # by what, node and fence: place
        self.got: dict[int, set[str]] = defaultdict(set)
        for place, (what, _, node, _, fence, got, _) in lines:
            if what == "begin":
                self.begins[int(node)].append((place, int(fence)))
                self.got[int(node)].add(got)
            else:
                self.ends[what, int(node), int(fence)] = place

    def first(self, node: int) -> int | None:
        return min((place for place, _ in self.begins[node]), default=None)


def judge(planned: Sequence[Planned], ledger: Ledger, seen: Mapping[int, Seen]) -> Iterator[tuple[str, str]]:
    """Yield what must not have happened in a run: what it is called, and an instance of it."""
    expected = outcomes(planned, {node for node, one in seen.items() if _is_quarantined(one)})
    ended: list[int] = []  # by node: the place before which it can't have ended
    for node, (_, parents) in enumerate(planned):
        one, begins = seen.get(node, _UNFINISHED), ledger.begins[node]
        causes = [ended[by] for by, policy in parents.items() if policy == "cancel" and expected[by] != "succeeded"]
        end = _end(one, node, ledger, causes)
        ended.append(0 if end is None else end)
        if one.state != expected[node]:
            yield "state", f"node {node} is {one.state}, not {expected[node]}"
        if end is None:
            yield "recorded without having ended", f"node {node} is {one.state} under fence {one.fence}"
        if len({fence for _, fence in begins}) < len(begins):
            yield "fence used twice", f"node {node}: {begins}"
        if begins and one.state == "cancelled":
            yield "ran though a parent ended badly", f"node {node}: {begins}"
        first = ledger.first(node)
        early = [parent for parent in parents if first is not None and ended[parent] >= first]
        if early:
            yield "began before a parent had ended", f"node {node} in line {first}, parents {early}"
        results = ",".join(str(by) if expected[by] == "succeeded" else "-" for by in parents) or "."
        if ledger.got[node] - {results}:
            yield "got other results", f"node {node}: {ledger.got[node]}, not {results}"


def _end(one: Seen, node: int, ledger: Ledger, causes: Sequence[int]) -> int | None:
    """Return the place in the ledger before which a node can't have ended; None if its own end should be there.

    One that was cancelled has not ended before the first of the *causes*, which are the ends of its parents.
    """
    if one.state == _UNFINISHED.state:
        return sys.maxsize
    if one.state == "cancelled":
        return min(causes, default=0)
    if _is_quarantined(one):
        return max((place for place, _ in ledger.begins[node]), default=0)
    return ledger.ends.get(("end" if one.state == "succeeded" else "fail", node, one.fence))


def _is_quarantined(one: Seen) -> bool:
    return one.state == "failed" and one.losses >= MAX_LOSSES


def late(ledger: Ledger, seen: Mapping[int, Seen]) -> int:
    """Return how many attempts began when the one that was recorded had ended."""
    return sum(
        place > ledger.ends.get((what, node, one.fence), place)
        for node, one in seen.items()
        for what in ("end", "fail")
        for place, _ in ledger.begins[node]
    )


# The storm.


class Weather:
    """Kills workers, and restarts the server now and then, while there is work."""

    def __init__(self, workers: Workers, ledger: Path, server: PostgresServer | None, kills: int, every: float) -> None:
        self._workers = workers
        self._ledger = ledger
        self._server = server
        self._kills = kills
        self._every = every
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.restarts = 0

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._over.set()
            self._thread.join()

    def _run(self) -> None:
        restart_at, seen = time.monotonic() + 2 * self._every, 0
        while not self._over.wait(random.uniform(0.2, 1.8) * self._every):
            self._workers.replace_ended()
            size = self._ledger.stat().st_size
            # When nothing was begun since the last kill, another could do no harm.
            if size > seen and self._workers.kills < self._kills:
                self._workers.kill()
                self._workers.start()
                seen = size
            if self._server is not None and time.monotonic() > restart_at:
                self._server.stop("immediate")
                time.sleep(random.uniform(0, 0.3))
                self._server.start()
                self.restarts += 1
                restart_at = time.monotonic() + random.uniform(3, 7) * self._every


def storm(
    url: str,
    server: PostgresServer | None = None,
    *,
    runs: int = 20,
    nodes: int = 1_000,
    workers: int = 4,
    kills: int = 100_000,
    every: float = 1.0,
    longest: float = 0.005,
    patience: float = 600.0,
) -> Account:
    """Run so many workflows with so many nodes, of which each takes *longest* at most; give up after *patience*."""
    open_store(url).close()
    app = Mainspring(url)
    graphs = [graph(seed, nodes) for seed in range(runs)]
    ids: list[tuple[UUID, list[UUID]]] = []
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "errors").open("w+b") as errors:
        path = Path(folder) / "ledger"
        path.touch()
        given = {"STORM_URL": url, "STORM_LEDGER": str(path), "STORM_LONGEST": str(longest)}
        processes = Workers(workers, ["-m", "tests.faults.dag_tasks", str(LEASE)], given, errors)
        weather = Weather(processes, path, server, kills, every)
        with processes.running():
            with weather.running():
                for run, planned in enumerate(graphs):
                    _wait(app, begun + patience, until_below=AT_ONCE)
                    ids.append(enqueue(app, run, planned))
                _wait(app, begun + patience, until_below=1)
        seconds = time.monotonic() - begun
        complaints = _complaints(Path(errors.name).read_text())
        lines = [(place, line.split()) for place, line in enumerate(path.read_text().splitlines(), 1)]
    left = {name: execute(url, f"SELECT count(*) FROM {table(url, name)}")[0][0] for name in _EMPTY}
    app.close()
    figures = Figures(processes.kills, weather.restarts, round(seconds, 1), left, complaints)
    return _account(graphs, ids, lines, _ends(url), _recorded_twice(url), figures)


_COMPLAINTS = ("in a way that it should not", "deadlock", "can't be stored")
"""What workers never say, however often they and the server are killed."""

_EMPTY = ("jobs", "edges", "follow_ups")
"""Tables that have no rows when all is over."""


def _wait(app: Mainspring, give_up: float, *, until_below: int) -> None:
    """Wait until fewer workflows are under way; not for ever, so that one which is stuck is told of in the account."""
    while time.monotonic() < give_up:
        with contextlib.suppress(StoreError):  # the server is away for longer than a call waits
            if sum(not job.state.final for job in app.client.store.workflows(limit=100)) < until_below:
                return
        time.sleep(0.1)


def _complaints(said: str) -> dict[str, int]:
    found = {what: said.count(what) for what in _COMPLAINTS}
    return {what: number for what, number in found.items() if number}


def _ends(url: str) -> dict[UUID, Seen]:
    rows = execute(url, f"SELECT id, state, fence, losses FROM {table(url, 'jobs_done')}")
    return {UUID(str(job_id)): Seen(*row) for job_id, *row in rows}


def _recorded_twice(url: str) -> int:
    """Return how many jobs have more than one end, or a success among the attempts that did not end them."""
    done, attempts = table(url, "jobs_done"), table(url, "attempts")
    doubles = execute(url, f"SELECT id FROM {done} GROUP BY id HAVING count(*) > 1")
    return len(doubles) + len(execute(url, f"SELECT 1 FROM {attempts} WHERE outcome = 'succeeded'"))


def _account(
    graphs: Sequence[Sequence[Planned]],
    ids: Sequence[tuple[UUID, list[UUID]]],
    lines: Sequence[tuple[int, list[str]]],
    ends: Mapping[UUID, Seen],
    recorded_twice: int,
    figures: Figures,
) -> Account:
    by_run: dict[int, list[tuple[int, list[str]]]] = defaultdict(list)
    for place, line in lines:
        by_run[int(line[1])].append((place, line))
    wrong: dict[str, list[str]] = defaultdict(list, {"recorded twice": [""] * recorded_twice} if recorded_twice else {})
    states: Counter[str] = Counter()
    workflows: Counter[str] = Counter()
    quarantined = late_ones = begun = 0
    for run, (planned, (workflow, members)) in enumerate(zip(graphs, ids, strict=False)):
        ledger = Ledger(by_run[run])
        seen = {node: ends[job_id] for node, job_id in enumerate(members) if job_id in ends}
        for what, instance in judge(planned, ledger, seen):
            wrong[what].append(f"run {run}, {instance}")
        failed = any(one.state == "failed" for one in seen.values())
        state = ends[workflow].state if workflow in ends else _UNFINISHED.state
        if state != ("failed" if failed else "succeeded"):
            wrong["state of the workflow"].append(f"run {run} is {state}")
        states.update(one.state for one in seen.values())
        workflows[state] += 1
        quarantined += sum(map(_is_quarantined, seen.values()))
        late_ones += late(ledger, seen)
        begun += sum(len(begins) for begins in ledger.begins.values())
    recorded = sum(number for state, number in states.items() if state != "cancelled")
    return Account(
        runs=len(graphs),
        nodes=len(graphs[0]),
        states=dict(states),
        workflows=dict(workflows),
        quarantined=quarantined,
        again=begun - recorded,
        late=late_ones,
        **figures._asdict(),
        wrong={what: f"{len(instances)}, such as {instances[0]}" for what, instances in wrong.items()},
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.dag_storm", description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="workflows (%(default)s)")
    parser.add_argument("--nodes", type=int, default=1_000, help="jobs of each (%(default)s)")
    parser.add_argument("--workers", type=int, default=4, help="%(default)s")
    parser.add_argument("--kills", type=int, default=100_000, help="at most; until all is done unless told")
    parser.add_argument("--every", type=float, default=1.0, help="seconds from kill to kill (%(default)s)")
    given = vars(parser.parse_args())
    on_both_stores_and_server(lambda url, server: storm(url, server, **given))


if __name__ == "__main__":
    main()
