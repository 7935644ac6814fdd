"""`app.dead`: dead letters as whoever deals with them sees them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest

from mainspring import Mainspring
from mainspring.errors import DeadGroupNotFound, InvalidPayload, InvalidValue, JobNotFound
from mainspring.job_handle import JobHandle
from mainspring.model.dead import Replayed
from mainspring.model.job import JobState
from mainspring.model.rate import Rate
from mainspring.model.retry import Retry
from mainspring.service import person
from mainspring.testing import SettableClock, drain
from tests.support.factories import new_id

Draining = Callable[[Replayed], object]


@pytest.fixture
def app(url: str, clock: SettableClock) -> Iterator[Mainspring]:
    """An app on the test's clock, so that a replay takes no time."""
    made = Mainspring(url, clock=clock)
    yield made
    made.close()


class Shop:
    """Tasks that fail until they are mended."""

    def __init__(self, app: Mainspring) -> None:
        self.app = app
        self.broken = True
        self.bad: set[int] = set()
        self.sent: list[tuple[int, str]] = []
        app.task(retry=Retry(max_attempts=1), name="send")(self._send)

    def _send(self, number: int, to: str = "all") -> None:
        if self.broken or number in self.bad:
            raise ValueError(f"can't send {number}")
        self.sent.append((number, to))

    def die(self, *numbers: int, **wishes: Any) -> list[JobHandle[Any]]:
        jobs = [self.app.enqueue("send", [number], **wishes) for number in numbers]
        drain(self.app)
        assert {job.state for job in jobs} == {JobState.FAILED}
        return jobs

    def drain(self, _: Replayed) -> None:
        drain(self.app)


@pytest.fixture
def shop(app: Mainspring) -> Shop:
    return Shop(app)


def test_failures_of_one_cause_are_one_group_that_is_replayed(app: Mainspring, shop: Shop) -> None:
    jobs = shop.die(*range(8))
    shop.broken = False

    (group,) = app.dead.groups()
    report = app.dead.replay(group=group.fingerprint, progress=shop.drain)

    assert (group.task, group.type, group.message, group.count) == ("send", "ValueError", "can't send 7", 8)
    assert report == Replayed(found=8, replayed=8, succeeded=8)
    assert (report.left, report.unfinished, app.dead.groups()) == (0, 0, [])
    assert {job.state for job in jobs} == {JobState.SUCCEEDED}


@pytest.mark.parametrize("canary", [1, 3])
def test_a_canary_that_fails_keeps_the_rest_from_being_replayed(app: Mainspring, shop: Shop, canary: int) -> None:
    jobs = shop.die(*range(10))
    (group,) = app.dead.groups()

    report = app.dead.replay(group=group.fingerprint, canary=canary, progress=shop.drain)

    assert (report.found, report.replayed, report.failed, report.left) == (10, canary, canary, 10 - canary)
    assert report.stopped is not None
    assert report.stopped.endswith("that finished failed again, more than 20%")
    assert [len(job.attempts()) for job in jobs] == [2] * canary + [1] * (10 - canary)


def test_the_rest_waits_until_the_canary_has_finished(app: Mainspring, shop: Shop) -> None:
    shop.die(*range(4))
    shop.broken = False
    seen: list[tuple[int, int]] = []

    def slowly(report: Replayed) -> None:
        seen.append((report.replayed, report.succeeded))
        drain(app)

    app.dead.replay(task="send", canary=2, progress=slowly)

    assert seen[:2] == [(2, 0), (2, 2)]


def test_it_stops_by_itself_when_too_many_fail_later(app: Mainspring, shop: Shop) -> None:
    shop.die(*range(40))
    shop.broken, shop.bad = False, set(range(10, 40))

    report = app.dead.replay(task="send", canary=5, stop_at=0.2, progress=shop.drain)

    assert report.stopped is not None
    assert report.succeeded == 10
    assert 2 < report.failed < 10
    assert report.left > 20


def test_somebody_stops_it(app: Mainspring, shop: Shop) -> None:
    shop.die(*range(40))
    shop.broken = False

    report = app.dead.replay(task="send", canary=5, halt=lambda: "somebody said so")

    assert (report.replayed, report.left, report.stopped) == (5, 35, "somebody said so")


def test_a_share_of_one_lets_all_fail(app: Mainspring, shop: Shop) -> None:
    shop.die(*range(8))

    report = app.dead.replay(task="send", stop_at=1, progress=shop.drain)

    assert (report.failed, report.stopped) == (8, None)


def test_one_that_fails_again_is_not_replayed_again_by_the_same_replay(app: Mainspring, shop: Shop) -> None:
    jobs = shop.die(*range(3))

    app.dead.replay(task="send", canary=0, stop_at=1, progress=shop.drain)

    assert [len(job.attempts()) for job in jobs] == [2, 2, 2]


def test_the_rest_follows_at_the_rate(app: Mainspring, shop: Shop, clock: SettableClock) -> None:
    shop.die(*range(12))
    shop.broken, began = False, clock.steady()

    app.dead.replay(task="send", canary=0, rate="2/s", progress=shop.drain)

    assert 5.4 <= clock.steady() - began <= 6.5


def test_time_that_was_lost_is_not_made_up_for(app: Mainspring, shop: Shop, clock: SettableClock) -> None:
    shop.die(*range(60))
    shop.broken = False
    replayed: list[int] = [0]

    def stall(report: Replayed) -> None:
        if replayed == [0]:
            clock.advance("1h")
        replayed.append(report.replayed)
        drain(app)

    app.dead.replay(task="send", canary=0, rate="10/s", progress=stall)

    assert replayed[-1] == 60
    assert max(after - before for before, after in pairwise(replayed)) <= 10


def test_a_slow_rate_is_kept_and_what_comes_of_it_is_watched_meanwhile(
    app: Mainspring, shop: Shop, clock: SettableClock
) -> None:
    shop.die(*range(4))
    shop.broken, began = False, clock.steady()
    told: list[float] = []

    def watch(report: Replayed) -> None:
        if report.succeeded > len(told):
            told.append(clock.steady() - began)
        drain(app)

    app.dead.replay(task="send", canary=1, rate=Rate(1, timedelta(minutes=10)), progress=watch)

    assert [round(seconds / 60) for seconds in told] == [0, 0, 10, 20]


def test_after_a_crash_the_rest_is_replayed_and_nothing_twice(app: Mainspring, shop: Shop) -> None:
    jobs = shop.die(*range(9))
    shop.broken = False

    def crash(report: Replayed) -> None:
        drain(app)
        if report.replayed == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        app.dead.replay(task="send", canary=2, progress=crash)
    report = app.dead.replay(task="send", canary=2, progress=shop.drain)

    assert (report.found, report.replayed, report.succeeded) == (4, 4, 4)
    assert sorted(shop.sent) == [(number, "all") for number in range(9)]
    assert [len(job.attempts()) for job in jobs] == [2] * 9


def test_who_did_it_and_why_is_kept_with_the_job(app: Mainspring, shop: Shop) -> None:
    one, two, three = shop.die(1, 2, 3)
    shop.broken = False

    app.dead.replay(ids=[one.id], reason="mended", by="ada", progress=shop.drain)
    app.dead.replay(ids=[str(two.id)], progress=shop.drain)
    app.dead.discard(ids=[three.id], reason="too late")

    assert one.refresh().reason == "replayed by ada: mended"
    assert two.refresh().reason == f"replayed by {person()}"
    assert three.refresh().reason == f"discarded by {person()}: too late"
    assert "@" in person()


def test_a_patch_sets_arguments_by_name_wherever_they_stand(app: Mainspring, shop: Shop) -> None:
    shop.die(1)
    app.enqueue("send", kwargs={"number": 2, "to": "Bob"})
    drain(app)
    shop.broken = False

    report = app.dead.replay(task="send", patch={"number": 7, "to": "Ada"}, progress=shop.drain)

    assert report.succeeded == 2
    assert shop.sent == [(7, "Ada"), (7, "Ada")]


@pytest.mark.parametrize(
    ("patch", "words"),
    [({"number": "x"}, "argument 'number'"), ({"nmber": 1}, "unexpected keyword argument 'nmber'")],
)
def test_a_patch_that_the_task_does_not_take_changes_nothing(
    app: Mainspring, shop: Shop, patch: dict[str, object], words: str
) -> None:
    jobs = shop.die(1, 2)

    with pytest.raises(InvalidPayload, match=words):
        app.dead.replay(task="send", patch=patch, progress=shop.drain)

    assert {job.state for job in jobs} == {JobState.FAILED}


def test_a_patch_that_one_letter_of_many_can_not_take_changes_nothing(app: Mainspring, shop: Shop) -> None:
    @app.task(retry=Retry(max_attempts=1))
    def other(other: int) -> None:
        raise ValueError("other")

    jobs = [*shop.die(*range(6), queue="mail"), app.enqueue("other", [1], queue="mail")]
    drain(app)

    with pytest.raises(InvalidPayload, match="task 'other'"):
        app.dead.replay(queue="mail", patch={"number": 1}, progress=shop.drain)

    assert {job.state for job in jobs} == {JobState.FAILED}


def test_arguments_of_a_task_that_the_app_does_not_know_are_set_by_name(url: str, app: Mainspring, shop: Shop) -> None:
    (job,) = shop.die(1)
    shop.broken = False
    stranger = Mainspring(url, clock=app.client.given_clock)

    stranger.dead.replay(ids=[job.id], patch={"to": "Ada"}, progress=shop.drain)

    assert shop.sent == [(1, "Ada")]
    stranger.close()


def test_a_letter_whose_key_is_taken_is_left(app: Mainspring, shop: Shop) -> None:
    shop.die(1, key="k")
    app.enqueue("send", [2], key="k", run_after="1h")
    shop.broken = False

    report = app.dead.replay(task="send", progress=shop.drain)

    assert (report.found, report.replayed, report.left, report.stopped) == (1, 0, 1, None)


def test_one_that_is_cancelled_meanwhile_says_nothing_about_the_cause(app: Mainspring, shop: Shop) -> None:
    jobs = shop.die(1, 2)
    shop.broken = False

    def cancel_one(report: Replayed) -> None:
        jobs[0].cancel()
        drain(app)

    report = app.dead.replay(task="send", stop_at=0, progress=cancel_one)

    assert (report.succeeded, report.cancelled, report.failed, report.stopped) == (1, 1, 0, None)


def test_discarded_letters_are_gone_from_the_dead_and_stay_in_history(app: Mainspring, shop: Shop) -> None:
    jobs = shop.die(1, 2, 3, queue="mail")

    assert app.dead.discard(queue="mail") == 3
    assert app.dead.discard(queue="mail") == 0

    assert (app.dead.groups(), app.dead.list(), app.dead.count()) == ([], [], 0)
    assert {job.state for job in jobs} == {JobState.CANCELLED}


def test_what_dies_after_it_was_known_what_is_meant_is_left_alone(
    app: Mainspring, shop: Shop, clock: SettableClock
) -> None:
    known = shop.die(1, 2, 3)
    meant = app.dead.meant(task="send")
    clock.advance("1s")
    later = shop.die(4, 5)
    bound = meant.finished_until

    assert meant.letters == app.dead.count(task="send", finished_until=bound) == 3
    assert app.dead.revive(ids=[known[0].id, later[0].id], finished_until=bound) == (1, 1)
    assert app.dead.replay(task="send", finished_until=bound, canary=0, progress=shop.drain).found == 2
    assert app.dead.discard(task="send", finished_until=bound) == 0
    assert app.dead.count() == 5
    with pytest.raises(InvalidValue, match="time zone"):
        app.dead.discard(ids=[later[0].id], finished_until=datetime(2026, 11, 15))  # noqa: DTZ001


def test_dead_letters_are_listed_in_pages(app: Mainspring, shop: Shop) -> None:
    jobs = shop.die(*range(5))

    first = app.dead.list(limit=2)
    rest = app.dead.list(before=first[-1].id, task="send")

    assert first + rest == jobs[::-1]
    assert first[0].snapshot.state is JobState.FAILED


def test_a_group_is_named_by_its_beginning(app: Mainspring, shop: Shop) -> None:
    shop.die(1)
    (group,) = app.dead.groups()

    assert app.dead.count(group.fingerprint[:4].upper()) == 1
    with pytest.raises(DeadGroupNotFound, match="begins with 'zz'"):
        app.dead.list("zz")


def test_a_beginning_that_several_groups_share_is_refused(app: Mainspring, shop: Shop) -> None:
    @app.task(retry=Retry(max_attempts=1))
    def other(word: str) -> None:
        raise KeyError(word) if len(word) % 2 else OSError(f"no {'x' * len(word)}")

    for length in range(40):
        app.enqueue("other", ["y" * length])
    drain(app)
    groups = app.dead.groups(limit=100)
    shared = next(
        one.fingerprint[0] for one in groups if sum(g.fingerprint[0] == one.fingerprint[0] for g in groups) > 1
    )

    with pytest.raises(InvalidValue, match=rf"more than one group begins with '{shared}': {shared}\w+, {shared}"):
        app.dead.discard(group=shared)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda dead: dead.replay(), "either by ids= or by group=, queue= or task=, got neither"),
        (lambda dead: dead.replay(ids=[new_id()], queue="q"), "got both"),
        (lambda dead: dead.discard(), "got neither"),
        (lambda dead: dead.discard(gruop="x"), "did you mean 'group'"),
        (lambda dead: dead.discard(ids=["x"]), "the id of a job"),
        (lambda dead: dead.discard(group=""), "expected group to be a fingerprint"),
        (lambda dead: dead.replay(queue="q", canary=-1), "expected canary"),
        (lambda dead: dead.replay(queue="q", canary=True), "expected canary"),
        (lambda dead: dead.replay(queue="q", stop_at=20), "expected stop_at to be a share from 0 to 1"),
        (lambda dead: dead.replay(queue="q", stop_at=float("nan")), "expected stop_at"),
        (lambda dead: dead.replay(queue="q", rate="0/s"), "rate '0/s' makes no sense"),
        (lambda dead: dead.replay(queue="q", patch=["x"]), "expected patch to be a mapping"),
        (lambda dead: dead.groups(limit=-1), "expected limit"),
        (lambda dead: dead.list(before="x"), "the id of a job"),
    ],
)
def test_what_makes_no_sense_is_refused(app: Mainspring, call: Callable[[Any], object], words: str) -> None:
    with pytest.raises(InvalidValue, match=words):
        call(app.dead)


def test_an_id_that_no_job_has_is_told(app: Mainspring) -> None:
    with pytest.raises(JobNotFound):
        app.dead.replay(ids=[UUID(int=7)])


def test_nothing_to_replay_is_fine(app: Mainspring) -> None:
    assert app.dead.replay(queue="mail") == Replayed(found=0)


def test_each_call_has_a_twin(app: Mainspring, shop: Shop) -> None:
    shop.die(1, 2)
    shop.broken = False

    async def look() -> tuple[int, int, int, Replayed, int]:
        groups, letters, count = await app.dead.agroups(), await app.dead.alist(), await app.dead.acount()
        discarded = await app.dead.adiscard(ids=[letters[0].id])
        return len(groups), len(letters), count, await app.dead.areplay(task="send", progress=shop.drain), discarded

    assert asyncio.run(look()) == (1, 2, 2, Replayed(found=1, replayed=1, succeeded=1), 1)


def test_a_real_worker_runs_what_is_replayed(url: str) -> None:
    app = Mainspring(url)
    mended = threading.Event()

    @app.task(retry=Retry(max_attempts=1))
    def work(number: int) -> int:
        if not mended.is_set():
            raise ValueError(f"number {number}")
        return number

    with app.worker(concurrency=2):
        jobs = work.enqueue_many([((number,), {}) for number in range(30)])
        for job in jobs:
            with pytest.raises(Exception, match="number"):
                job.result(timeout=20)
        mended.set()
        report = app.dead.replay(task="work", rate="1000/s")

    assert report == Replayed(found=30, replayed=30, succeeded=30)
    app.close()
