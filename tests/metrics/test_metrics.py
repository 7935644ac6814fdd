"""Metrics: what Prometheus is told is what happened, costs the database little, and betrays no team."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mainspring import Context, JobState, Mainspring, Retry
from mainspring.errors import StoreUnavailable
from mainspring.metrics import look, render
from mainspring.metrics.labels import MOST, Labels
from mainspring.metrics.look import Look
from mainspring.model.trigger import every
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.factories import claimed_job, opened_session
from tests.support.waiting import until

LONG = "60s"
ONCE = Retry(max_attempts=1)

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture(autouse=True)
def _always_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look, "_KEPT", 0.0)
    monkeypatch.setattr(look, "_SHARE", 0)


def scraped(app: Mainspring) -> Samples:
    families = text_string_to_metric_families(render(app).decode())
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def value(app: Mainspring, name: str, **labels: str) -> float | None:
    return scraped(app).get((f"mainspring_{name}", tuple(sorted(labels.items()))))


def test_queues_are_told_with_how_much_waits_and_for_how_long(url: str, clock: SettableClock) -> None:
    app = Mainspring(url, clock=clock)

    @app.task(queue="mail")
    def mail() -> None: ...

    mail.enqueue()
    clock.advance("30s")
    mail.enqueue()
    mail.using(run_after="1h").enqueue()
    app.queues.pause("mail")

    assert value(app, "queue_jobs", queue="mail", state="ready") == 2
    assert value(app, "queue_jobs", queue="mail", state="scheduled") == 1
    assert value(app, "queue_oldest_ready_seconds", queue="mail") == 30
    assert value(app, "queue_paused", queue="mail") == 1
    app.close()


def test_an_empty_queue_is_told_as_such(url: str, clock: SettableClock) -> None:
    app = Mainspring(url, clock=clock)
    app.queues.pause("mail")

    states = [state.value for state in JobState if not state.final]
    assert [value(app, "queue_jobs", queue="mail", state=state) for state in states] == [0] * len(states)
    with app.worker(queues={"served": 1}):
        assert value(app, "queue_jobs", queue="served", state="ready") == 0
    assert value(app, "queue_jobs", queue="mail", state="succeeded") is None
    app.close()


def test_lags_are_told(url: str, clock: SettableClock) -> None:
    app = Mainspring(url, clock=clock)

    @app.task
    def mail() -> None: ...

    mail.using(run_after="10s").enqueue()
    app.schedules.add("often", mail, every("1m"))
    assert (value(app, "promote_lag_seconds"), value(app, "schedule_lag_seconds")) == (0, 0)
    clock.advance("10m")

    assert value(app, "promote_lag_seconds") == 590
    late = value(app, "schedule_lag_seconds")
    assert late is not None
    assert 500 <= late <= 600
    app.close()


def test_workers_dead_letters_and_the_database_are_told(app: Mainspring, real_store: SqlStore) -> None:
    store = real_store
    alive, lost = opened_session(store), opened_session(store, lease=timedelta(milliseconds=100))
    until(lambda: [one.id for one in store.sessions() if not one.alive] == [lost])
    claimed_job(store, alive)

    @app.task(retry=ONCE)
    def boom() -> None:
        raise ValueError("no")

    with app.worker(concurrency=1):
        job = boom.enqueue()
        until(lambda: job.state.final)
        until(lambda: value(app, "workers", state="lost") == 0)  # its scheduler has reaped it
        assert value(app, "workers", state="alive") == 2

    assert value(app, "running_jobs") == 1
    assert value(app, "dead_letters") == 1
    assert value(app, "database_up") == 1
    assert value(app, "schema_version") == store.version()
    assert value(app, "database_round_trip_seconds") is not None


def test_attempts_failures_and_ends_are_counted_by_task(app: Mainspring) -> None:
    @app.task
    def fine() -> None: ...

    @app.task(retry=Retry(max_attempts=2, base="0s"))
    def boom() -> None:
        raise ValueError("no")

    with app.worker():
        jobs = [fine.enqueue(), fine.enqueue(), boom.enqueue()]
        until(lambda: all(job.state.final for job in jobs))

    assert value(app, "attempts_total", task="fine", outcome="succeeded") == 2
    assert value(app, "attempts_total", task="boom", outcome="failed") == 2
    assert value(app, "failures_total", task="boom") == 2
    assert value(app, "failures_total", task="fine") == 0
    assert value(app, "jobs_finished_total", task="boom", state="failed") == 1
    assert value(app, "jobs_finished_total", task="fine", state="succeeded") == 2


def test_every_job_of_a_flood_is_counted_and_times_add_up(app: Mainspring) -> None:
    @app.task
    def one() -> None: ...

    @app.task(queue="mail")
    def other() -> None: ...

    with app.worker():
        jobs = [*one.enqueue_many([((), {})] * 3_000), *other.enqueue_many([((), {})] * 500)]
        until(lambda: value(app, "attempts_total", task="one", outcome="succeeded") == 3_000)
        until(lambda: value(app, "attempts_total", task="other", outcome="succeeded") == 500)

    assert len(jobs) == 3_500
    for name in ("wait", "run"):
        assert value(app, f"{name}_seconds_count", queue="default") == 3_000
        assert value(app, f"{name}_seconds_count", queue="mail") == 500
        assert value(app, f"{name}_seconds_bucket", queue="default", le="+Inf") == 3_000
    assert value(app, "settle_batch_jobs_sum") == 3_500
    assert value(app, "claim_batch_jobs_sum") == 3_500


@pytest.mark.parametrize("kind", ["thread", "coroutine"])
def test_a_wait_ends_when_the_handler_starts_and_a_run_when_it_returns(app: Mainspring, kind: str) -> None:
    started, gate = threading.Event(), threading.Event()

    def hold() -> None:
        started.set()
        gate.wait()

    async def ahold() -> None:
        import asyncio

        await asyncio.to_thread(hold)

    task: Any = app.task(name="hold")(hold if kind == "thread" else ahold)
    with app.worker(concurrency=1):
        job = task.enqueue()
        started.wait()
        begun = app.client.clock.steady()
        until(lambda: app.client.clock.steady() > begun + 0.3)
        gate.set()
        job.result(timeout=LONG)
        until(lambda: value(app, "run_seconds_count", queue="default") == 1)

    ran, waited = value(app, "run_seconds_sum", queue="default"), value(app, "wait_seconds_sum", queue="default")
    assert ran is not None
    assert waited is not None
    assert ran >= 0.3
    assert value(app, "run_seconds_bucket", queue="default", le="0.25") == 0
    assert waited < ran


def test_a_job_that_succeeds_with_its_transaction_is_counted_once(app: Mainspring) -> None:
    @app.task
    def mail(ctx: Context) -> None:
        with ctx.transaction():
            pass

    with app.worker():
        mail.enqueue().result(timeout=LONG)
        until(lambda: value(app, "attempts_total", task="mail", outcome="succeeded"))

    assert value(app, "attempts_total", task="mail", outcome="succeeded") == 1
    assert value(app, "run_seconds_count", queue="default") == 1


def test_what_goes_back_unstarted_is_no_attempt(app: Mainspring) -> None:
    gate, started = threading.Event(), threading.Event()

    @app.task
    def hold() -> None:
        started.set()
        gate.wait()

    jobs = [hold.enqueue() for _ in range(3)]
    with app.worker(concurrency=1):
        started.wait()
        gate.set()
        jobs[0].result(timeout=LONG)

    attempts = value(app, "attempts_total", task="hold", outcome="succeeded")
    assert attempts == sum(job.state.final for job in jobs)
    assert value(app, "attempts_total", task="hold", outcome="returned") is None


@pytest.mark.parametrize("kind", ["thread", "coroutine"])
def test_what_goes_back_in_its_midst_is_told_with_its_time(
    app: Mainspring, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    monkeypatch.setattr("mainspring.worker.worker._STOPPING", 0.05)
    gate, started = threading.Event(), threading.Event()

    def hold() -> None:
        started.set()
        gate.wait()

    async def ahold() -> None:
        hold()

    task: Any = app.task(name="hold")(hold if kind == "thread" else ahold)
    with app.worker(concurrency=1, grace=0):
        job = task.enqueue()
        started.wait()
    assert job.state is JobState.READY
    ran = value(app, "run_seconds_sum", queue="default")
    gate.set()

    assert (value(app, "run_seconds_count", queue="default"), ran is not None and ran > 0) == (1, True)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_no_team_key_job_or_queue_of_a_teams_own_is_in_any_label(app: Mainspring, monkeypatch: Any) -> None:
    @app.task(fair="{tenant}", key="key-{tenant}")
    def mail(tenant: str) -> None: ...

    acme = app.within("acme-team")
    monkeypatch.setattr(type(app.client), "owners", lambda self: {"acme-queue": "acme-team"}, raising=False)
    done = [acme.enqueue("mail", ["secret-tenant"])]
    with app.worker(queues={"default": 1, "acme-queue": 1}):
        done.append(acme.enqueue("mail", ["another-tenant"], queue="acme-queue"))
        for job in done:
            job.result(timeout=LONG)
        acme.enqueue("mail", ["third-tenant"], queue="made-up-queue")
        acme.enqueue("mail", ["fourth-tenant"], queue="acme-queue", run_after="1h")

        until(lambda: value(app, "attempts_total", task="mail", outcome="succeeded") == 2)
        text = render(app).decode()

    for word in ("acme", "tenant", "key-", "made-up", *(str(job.id) for job in done)):
        assert word not in text
    assert value(app, "queue_jobs", queue="other", state="ready") == 1
    assert value(app, "queue_jobs", queue="other", state="scheduled") == 1
    assert value(app, "run_seconds_count", queue="other") == 1


def test_the_number_of_names_is_bounded() -> None:
    labels = Labels()
    labels.learn(f"{number:03}" for number in range(MOST + 50))

    assert {labels.of(f"{number:03}") for number in range(MOST + 50)} == {*(f"{n:03}" for n in range(MOST)), "other"}


def test_a_queue_keeps_its_series_when_its_workers_are_gone_but_not_when_it_becomes_a_teams() -> None:
    labels = Labels()
    labels.learn(["mail"])
    labels.learn([])
    assert labels.of("mail") == "mail"

    labels.learn(["mail"], hidden={"mail"})
    assert labels.of("mail") == "other"


class Failing:
    """A client whose database is away."""

    def __init__(self) -> None:
        self.asked = 0

    @property
    def store(self) -> Any:
        self.asked += 1
        raise StoreUnavailable("away")


def test_a_database_that_is_away_is_told_and_what_is_known_here_is_too(
    app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.task
    def fine() -> None: ...

    with app.worker():
        fine.enqueue().result(timeout=LONG)
        until(lambda: value(app, "attempts_total", task="fine", outcome="succeeded") == 1)

    monkeypatch.setattr(type(app.client), "store", Failing.store)
    monkeypatch.setattr(app.client, "asked", 0, raising=False)
    assert value(app, "database_up") == 0
    assert value(app, "workers", state="alive") is None
    assert value(app, "attempts_total", task="fine", outcome="succeeded") == 1


def test_scrapes_ask_the_database_seldom_also_when_it_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look, "_KEPT", 2.0)
    clock, client = SettableClock(), Failing()
    watched = Look(client, clock)  # type: ignore[arg-type]

    for _ in range(50):
        assert watched.view() is None
    assert client.asked == 1
    clock.advance("2s")
    watched.view()
    assert client.asked == 2


def test_the_longer_an_answer_takes_the_longer_it_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look, "_KEPT", 2.0)
    monkeypatch.setattr(look, "_SHARE", 20)
    clock = SettableClock()

    class Slow(Failing):
        @property
        def store(self) -> Any:
            clock.advance("1s")
            return super().store

    client = Slow()
    watched = Look(client, clock)  # type: ignore[arg-type]
    watched.view()
    clock.advance("19s")
    watched.view()
    assert client.asked == 1
    clock.advance("1s")
    watched.view()
    assert client.asked == 2


def test_what_collects_for_an_app_does_not_keep_it_alive(sqlite_url: str) -> None:
    app = Mainspring(sqlite_url)
    render(app)
    app.close()
    gone = weakref.ref(app.client)

    del app
    gc.collect()

    assert gone() is None


@pytest.fixture
def two_apps(sqlite_url: str) -> Iterator[list[Mainspring]]:
    apps = [Mainspring(sqlite_url), Mainspring(f"{sqlite_url}-other")]
    yield apps
    for app in apps:
        app.close()


def test_two_apps_in_one_process_are_told_apart(two_apps: list[Mainspring]) -> None:
    for app in two_apps:
        app.task(name="fine")(lambda: None)
    with two_apps[0].worker():
        two_apps[0].enqueue("fine").result(timeout=LONG)
        until(lambda: value(two_apps[0], "attempts_total", task="fine", outcome="succeeded") == 1)

    assert value(two_apps[1], "attempts_total", task="fine", outcome="succeeded") is None
    assert value(two_apps[0].within("acme"), "attempts_total", task="fine", outcome="succeeded") == 1
