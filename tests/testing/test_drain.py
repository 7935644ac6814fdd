"""Draining: what is due runs in the thread of the test, as a worker would run it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID

import pytest

from mainspring import Breaker, Context, JobState, Limit, Mainspring, Priority, Retry, Snooze
from mainspring.clock import SystemClock
from mainspring.errors import JobFailed
from mainspring.model.breaker import Phase
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Returned
from mainspring.store import open_store
from mainspring.testing import SettableClock, adrain, drain
from tests.support.databases import execute
from tests.support.receiver import receiving


@pytest.fixture
def app(url: str, clock: SettableClock) -> Iterator[Mainspring]:
    """An app on each kind of database in turn, and on the test's clock."""
    made = Mainspring(url, clock=clock)
    yield made
    made.close()


def test_what_is_due_runs_here_and_what_is_not_waits(app: Mainspring, clock: SettableClock) -> None:
    @app.task
    def where(number: int) -> tuple[int, int]:
        return number, threading.get_ident()

    now, later = where.enqueue(1), where.using(run_after="1h").enqueue(2)

    assert drain(app) == [now]
    assert now.result() == (1, threading.get_ident())
    assert later.refresh().state is JobState.SCHEDULED
    clock.advance("59m")
    assert drain(app) == []
    clock.advance("1m")
    assert drain(app) == [later]
    assert later.state is JobState.SUCCEEDED
    assert app.client.store.sessions() == []


def test_requests_are_sent_to_where_they_may_go(app: Mainspring, monkeypatch: pytest.MonkeyPatch) -> None:
    with receiving() as receiver:
        refused = app.http.enqueue(receiver.url)
        assert drain(app) == [refused]
        monkeypatch.setenv("MAINSPRING_OUTBOUND_ALLOW", "127.0.0.1")
        sent = app.http.enqueue(receiver.url)
        assert drain(app) == [sent]
    assert (refused.state, sent.result()["status"], receiver.connections) == (JobState.FAILED, 200, 1)


def test_a_command_that_is_due_is_not_passed_over_in_silence(app: Mainspring) -> None:
    @app.task
    def own() -> str:
        return "done"

    job, other = app.command.enqueue(["true"]), own.enqueue()
    with pytest.raises(AssertionError, match=rf"job {job.id} is a command, and drain runs none"):
        drain(app)
    assert other.result() == "done"
    job.cancel()
    assert drain(app) == []


def test_queues_come_by_name_and_jobs_by_their_place(app: Mainspring) -> None:
    ran: list[str] = []

    @app.task
    def note(name: str) -> None:
        ran.append(name)

    note.using(queue="b").enqueue("second queue")
    jobs = [note.using(queue="a", priority=priority).enqueue(priority.name) for priority in Priority]

    assert [job.id for job in drain(app)][:4] == [job.id for job in reversed(jobs)]
    assert ran == ["URGENT", "HIGH", "NORMAL", "LOW", "second queue"]


def test_what_becomes_more_urgent_meanwhile_goes_first(app: Mainspring) -> None:
    ran: list[str] = []

    @app.task
    def note(name: str) -> None:
        ran.append(name)
        if name == "first":
            note.using(priority=Priority.URGENT).enqueue("urgent")

    note.enqueue_many([(("first",), {}), (("second",), {})])
    drain(app)

    assert ran == ["first", "urgent", "second"]


def test_jobs_that_jobs_enqueue_run_too(app: Mainspring) -> None:
    @app.task
    def count_down(number: int) -> None:
        if number:
            count_down.using(queue=f"queue-{number}").enqueue(number - 1)

    count_down.enqueue(5)

    assert [job.state for job in drain(app)] == [JobState.SUCCEEDED] * 6


def test_a_retry_comes_when_its_time_has_come(app: Mainspring, clock: SettableClock) -> None:
    attempts: list[int] = []

    @app.task(retry=Retry(max_attempts=3, base="10s"))
    def flaky(ctx: Context) -> str:
        attempts.append(ctx.attempt)
        if len(attempts) < 3:
            raise ConnectionError("refused")
        return "done"

    job = flaky.enqueue()

    assert [drained.state for drained in drain(app)] == [JobState.RETRYING]
    assert job.refresh().run_at == clock.now() + timedelta(seconds=10)
    assert drain(app) == []
    clock.advance("10s")
    assert drain(app) == [job]
    assert job.refresh().run_at == clock.now() + timedelta(seconds=20)
    clock.advance("20s")
    assert drain(app) == [job]
    assert job.result() == "done"
    assert attempts == [1, 2, 3]
    assert [attempt.outcome for attempt in job.attempts()] == ["failed", "failed", "succeeded"]


def test_a_failure_is_kept_with_the_job(app: Mainspring) -> None:
    @app.task(retry=Retry(max_attempts=1))
    def fail() -> None:
        raise ValueError("no such thing")

    fail.enqueue()
    (job,) = drain(app)

    with pytest.raises(JobFailed, match="no such thing"):
        job.result()
    assert job.snapshot.failure is not None
    assert job.snapshot.failure.type == "ValueError"


def test_a_result_that_can_not_be_kept_fails_the_job(app: Mainspring) -> None:
    @app.task
    def odd() -> object:
        return object()

    odd.enqueue()

    assert [job.state for job in drain(app)] == [JobState.FAILED]


def apart() -> int:
    return threading.get_ident()


def test_handlers_of_every_kind_run_in_this_thread(app: Mainspring) -> None:
    @app.task
    async def awaited(ctx: Context) -> int:
        await asyncio.sleep(0)
        ctx.check()
        return threading.get_ident()

    jobs = [awaited.enqueue(), app.task(executor="process")(apart).enqueue()]

    assert drain(app) == jobs
    assert [job.result() for job in jobs] == [threading.get_ident()] * 2


def test_the_context_works(app: Mainspring, clock: SettableClock) -> None:
    @app.task(timeout="1m")
    def work(ctx: Context) -> list[object]:
        ctx.log("half of %d", 2)
        ctx.progress(1, 2, "half")
        ctx.log.warning("careful")
        return [str(ctx.job_id), ctx.attempt, ctx.fence, ctx.idempotency_key, ctx.deadline == deadline]

    deadline = clock.now() + timedelta(minutes=1)
    job = work.enqueue()
    drain(app)

    assert job.result() == [str(job.id), 1, 1, str(job.id), True]
    assert [(line.level, line.message) for line in job.logs()] == [("info", "half of 2"), ("warning", "careful")]
    assert job.refresh().reached is not None


def test_what_a_transaction_wrote_is_kept_with_the_success(app: Mainspring) -> None:
    @app.task(retry=Retry(max_attempts=1))
    def write(ctx: Context, ends_well: bool) -> None:
        ctx.log("before")
        with ctx.transaction("kept") as connection:
            connection.execute("CREATE TABLE kept (number int)")
            if not ends_well:
                ctx.log("within")
                raise RuntimeError("too bad")
        ctx.check()
        went_on.append(ctx.job_id)

    went_on: list[UUID] = []
    bad = write.enqueue(False)
    good = write.enqueue(True)
    drain(app)

    assert (bad.state, good.state) == (JobState.FAILED, JobState.SUCCEEDED)
    assert good.refresh().result == '"kept"'
    assert went_on == [good.id]
    assert [line.message for line in bad.logs()] == ["before", "within"]


def test_a_job_that_is_cancelled_while_it_runs_ends_at_its_next_check(app: Mainspring) -> None:
    @app.task
    def give_up(ctx: Context) -> None:
        app.job(ctx.job_id).cancel()
        ctx.check()
        raise AssertionError("it went on")

    give_up.enqueue()

    assert [job.state for job in drain(app)] == [JobState.CANCELLED]


def test_a_job_that_is_paused_while_it_runs_goes_on_when_it_is_resumed(app: Mainspring) -> None:
    attempts: list[int] = []

    @app.task
    def rest(ctx: Context) -> None:
        attempts.append(ctx.attempt)
        if len(attempts) == 1:
            app.job(ctx.job_id).pause()
        ctx.check()

    job = rest.enqueue()

    assert [drained.state for drained in drain(app)] == [JobState.PAUSED]
    job.resume()
    assert [drained.state for drained in drain(app)] == [JobState.SUCCEEDED]


def test_a_handler_that_goes_on_after_each_failure_ends_when_its_job_is_given_to_another(app: Mainspring) -> None:
    items: list[tuple[int, int]] = []

    @app.task
    def work(ctx: Context) -> None:
        for item in range(3):
            items.append((ctx.fence, item))
            if (ctx.fence, item) == (1, 1):
                app.client.store.settle([settle(app.job(ctx.job_id).snapshot, Returned())])
            try:
                ctx.check()
            except Exception:  # noqa: BLE001 - as such handlers do
                continue

    work.enqueue()
    (job,) = drain(app)

    assert items == [(1, 0), (1, 1), (2, 0), (2, 1), (2, 2)]
    assert (job.state, job.snapshot.fence) == (JobState.SUCCEEDED, 2)


def test_time_that_passes_in_a_handler_can_be_too_much(app: Mainspring, clock: SettableClock) -> None:
    @app.task(timeout="1m", retry=Retry(max_attempts=1))
    def dawdle(ctx: Context) -> None:
        clock.advance("59s")
        ctx.check()
        clock.advance("1s")
        ctx.check()

    dawdle.enqueue()
    (job,) = drain(app)

    assert (job.state, job.attempts()[0].outcome) == (JobState.FAILED, "timed_out")


def test_handlers_may_move_the_clock_as_far_as_they_like(app: Mainspring, clock: SettableClock) -> None:
    @app.task
    def wait(ctx: Context) -> None:
        clock.advance("400d")
        ctx.check()

    jobs = wait.enqueue_many([((), {}), ((), {})])

    assert drain(app) == jobs
    assert [job.state for job in jobs] == [JobState.SUCCEEDED] * 2


def test_a_job_that_snoozes_is_run_again_when_it_wakes(app: Mainspring, clock: SettableClock) -> None:
    @app.task
    def sleepy() -> None:
        if clock.now() < morning:
            raise Snooze("8h")

    morning = clock.now() + timedelta(hours=8)
    sleepy.enqueue()

    assert [job.state for job in drain(app)] == [JobState.SCHEDULED]
    clock.advance("8h")
    assert [job.state for job in drain(app)] == [JobState.SUCCEEDED]


def test_a_job_that_exits_fails_and_the_rest_goes_on(app: Mainspring) -> None:
    @app.task(retry=Retry(max_attempts=1))
    def leave(code: int) -> None:
        if code:
            raise SystemExit(code)

    leave.enqueue(1)
    leave.enqueue(0)

    assert sorted(job.state for job in drain(app)) == [JobState.FAILED, JobState.SUCCEEDED]


@pytest.mark.parametrize("end", [KeyboardInterrupt, pytest.fail.Exception], ids=lambda end: end.__name__)
def test_what_ends_the_test_is_passed_on_and_the_job_goes_back(app: Mainspring, end: type[BaseException]) -> None:
    @app.task
    def interrupted() -> None:
        raise end("enough")

    job = interrupted.enqueue()
    with pytest.raises(end, match="enough"):
        drain(app)

    assert (job.refresh().state, job.refresh().attempt) == (JobState.READY, 0)
    assert app.client.store.sessions() == []


def test_the_job_of_a_test_that_was_killed_is_taken_back_in_time(url: str) -> None:
    tomorrow = SettableClock(SystemClock().now())
    tomorrow._steady = SystemClock().steady()
    tomorrow.advance("1d")
    app, reaper = Mainspring(url), open_store(url, clock=tomorrow)

    @app.task
    def outlive() -> int:
        return reaper.reap()  # as if nothing more came of this

    job = outlive.enqueue()
    drain(app)

    assert (job.state, job.snapshot.losses) == (JobState.READY, 1)
    reaper.close()
    app.close()


def test_jobs_that_enqueue_each_other_for_ever_are_found_out(app: Mainspring) -> None:
    @app.task
    def forever() -> None:
        forever.enqueue()

    forever.enqueue()
    with pytest.raises(AssertionError, match="drain has run 3 attempts, and more is due, next a job of 'forever'"):
        drain(app, limit=3)

    assert [job.state for job in app.jobs()] == [JobState.READY] + [JobState.SUCCEEDED] * 3


def test_jobs_of_unknown_tasks_stay_where_they_are(app: Mainspring, url: str, clock: SettableClock) -> None:
    @app.task
    def known() -> None: ...

    known.enqueue()
    sender = Mainspring(url, clock=clock)
    stranger = sender.enqueue("unknown")

    assert len(drain(app)) == 1
    assert stranger.state is JobState.READY
    sender.close()


def test_jobs_wait_while_what_they_depend_on_is_down(app: Mainspring, clock: SettableClock) -> None:
    up = False

    @app.task(breaker=Breaker("stripe", open_at="100% of 2 in 1m", cooldown="30s"), retry=Retry(base="1h", cap="1h"))
    def charge() -> None:
        if not up:
            raise ConnectionError("refused")

    jobs = [charge.enqueue() for _ in range(6)]

    assert [job.state for job in drain(app)] == [JobState.RETRYING] * 2
    assert [(job.refresh().state, job.refresh().attempt) for job in jobs[2:]] == [(JobState.BLOCKED, 0)] * 4
    clock.advance("29s")
    assert drain(app) == []
    clock.advance("1s")
    assert [(job.id, job.state) for job in drain(app)] == [(jobs[2].id, JobState.RETRYING)]  # the probe
    up = True
    clock.advance("30s")
    assert drain(app) == jobs[3:]
    assert app.breakers.get("stripe").phase is Phase.CLOSED
    clock.advance("1h")
    assert sorted(job.id for job in drain(app)) == [job.id for job in jobs[:3]]


def test_a_breaker_that_was_tripped_keeps_jobs_waiting(app: Mainspring, clock: SettableClock) -> None:
    @app.task(breaker=Breaker("stripe"))
    def charge() -> None: ...

    app.breakers.trip("stripe", lasting="10m")
    jobs = [charge.enqueue() for _ in range(3)]

    assert drain(app) == []
    clock.advance("10m")
    assert drain(app) == jobs


def test_a_rate_lets_jobs_start_as_the_clock_moves(app: Mainspring, clock: SettableClock) -> None:
    @app.task(limits=[Limit("smtp", rate="2/m"), Limit("one", concurrency=1)])
    def send() -> None: ...

    jobs = [send.enqueue() for _ in range(5)]

    assert drain(app) == jobs[:2]
    assert drain(app) == []
    clock.advance("30s")
    assert drain(app) == jobs[2:3]
    clock.advance("5m")
    assert drain(app) == jobs[3:]
    assert app.client.store.slot_holders("one") == []


def test_coroutines_can_drain_too(app: Mainspring) -> None:
    @app.task
    async def awaited() -> int:
        return 1

    async def test() -> None:
        with pytest.raises(AssertionError, match=r"await adrain\(app\)"):
            drain(app)
        (job,) = await adrain(app)
        assert job.result() == 1

    awaited.enqueue()
    asyncio.run(test())


@pytest.mark.parametrize("awaits", [False, True], ids=["plain", "coroutine"])
def test_a_durable_job_goes_on_as_the_clock_moves_and_signals_come(
    app: Mainspring, clock: SettableClock, awaits: bool
) -> None:
    called: list[int] = []

    if awaits:

        @app.task(name="flow")
        async def aflow(ctx: Context) -> object:
            await ctx.step("charge", called.append, 1)
            await ctx.sleep("3d")
            return [await ctx.wait_signal("go", timeout="1h"), await ctx.wait_signal("go", timeout="1h")]

    else:

        @app.task(name="flow")
        def flow(ctx: Context) -> object:
            ctx.step("charge", called.append, 1)
            ctx.sleep("3d")
            return [ctx.wait_signal("go", timeout="1h"), ctx.wait_signal("go", timeout="1h")]

    job = app.enqueue("flow")
    assert drain(app) == [job]
    assert (job.state, drain(app)) == (JobState.SCHEDULED, [])
    clock.advance("3d")
    assert drain(app) == [job]
    assert (job.state, drain(app)) == (JobState.BLOCKED, [])
    job.signal("go", 7)
    assert drain(app) == [job]
    clock.advance("1h")
    assert drain(app) == [job]

    assert job.result() == [7, None]
    assert (called, job.snapshot.attempt) == ([1], 1)


def test_rows_are_written_with_their_step(app: Mainspring, url: str) -> None:
    @app.task
    def flow(ctx: Context) -> str:
        def write() -> None:
            ctx.log("within")
            with ctx.transaction(result="written") as db:
                db.execute("INSERT INTO effects VALUES (1)")

        found: str = ctx.step("write", write)
        ctx.log("after")
        return f"{found} by attempt {ctx.attempt}"

    job = flow.enqueue()
    execute(url, "CREATE TABLE effects (number INTEGER)")
    drain(app)

    assert job.result() == "written by attempt 1"
    assert execute(url, "SELECT * FROM effects") == [(1,)]
    assert [line.message for line in job.logs()] == ["within", "after"]
