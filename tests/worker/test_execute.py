"""Execute: handlers run, and what they came to is what is kept."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import UTC, date, datetime, timedelta, tzinfo

import pytest

from mainspring import Context, JobState, Mainspring, Retry, RetryAfter, Snooze
from mainspring.errors import CancelRequested, InvalidValue, JobFailed, LeaseLost, TimeExpired, WorkerStopped
from mainspring.job_handle import JobHandle
from mainspring.model.outcome import Cancelled, Failed, Outcome, Returned, TimedOut
from mainspring.model.task import Task
from mainspring.worker import execute as execution
from tests.support.databases import execute
from tests.support.waiting import until
from tests.worker.endings import outcomes

LONG = "60s"
ONCE = Retry(max_attempts=1)


def failed(job: JobHandle[object]) -> str:
    """Return why *job* failed, having waited for it."""
    with pytest.raises(JobFailed) as caught:
        job.result(timeout=LONG)
    return str(caught.value)


def test_a_function_is_called_with_its_arguments_and_its_result_comes_back(app: Mainspring) -> None:
    @app.task
    def later(day: date, *, by: timedelta) -> date:
        return day + by

    job = later.enqueue(date(2026, 1, 1), by=timedelta(days=2))
    with app.worker():
        assert job.result(timeout=LONG) == date(2026, 1, 3)

    assert job.state is JobState.SUCCEEDED
    assert outcomes(job) == ["succeeded"]


def test_a_coroutine_function_is_awaited(app: Mainspring) -> None:
    @app.task
    async def later(n: int) -> int:
        await asyncio.sleep(0)
        return n + 1

    with app.worker():
        assert [job.result(timeout=LONG) for job in later.enqueue_many([((n,), {}) for n in range(50)])] == [
            n + 1 for n in range(50)
        ]


def test_many_coroutines_run_side_by_side(app: Mainspring) -> None:
    """Each waits for all the others, so they end only if they run at the same time."""
    everybody = asyncio.Barrier(100)

    @app.task
    async def meet() -> None:
        await everybody.wait()

    with app.worker(concurrency=1):
        for job in meet.enqueue_many([((), {})] * 100):
            job.result(timeout=LONG)


def test_functions_run_side_by_side_up_to_the_concurrency(app: Mainspring) -> None:
    three = threading.Barrier(3)

    @app.task
    def meet() -> None:
        three.wait()

    with app.worker(concurrency=3):
        for job in meet.enqueue_many([((), {})] * 6):
            job.result(timeout=LONG)


def test_a_function_that_raises_a_cancel_is_not_called_a_coroutine(app: Mainspring) -> None:
    @app.task(retry=ONCE)
    def cancelled() -> None:
        raise asyncio.CancelledError

    job = cancelled.enqueue()
    with app.worker():
        assert failed(job).endswith("it was raised in the handler: nobody had asked the worker to cancel it")

    assert outcomes(job) == ["failed"]


def test_a_failure_is_tried_again_until_it_works(app: Mainspring) -> None:
    @app.task(retry=Retry(max_attempts=5, base="10ms"))
    def flaky(ctx: Context) -> int:
        if ctx.attempt < 3:
            raise ConnectionError("not yet")
        return ctx.attempt

    job = flaky.enqueue()
    with app.worker():
        assert job.result(timeout=LONG) == 3

    assert outcomes(job) == ["failed", "failed", "succeeded"]


def test_a_failure_is_kept_with_its_traceback_and_a_fingerprint(app: Mainspring) -> None:
    @app.task(retry=ONCE)
    def broken(n: int) -> None:
        raise ValueError(f"no room for {n}")

    jobs = broken.enqueue_many([((1,), {}), ((2,), {})])
    with app.worker():
        assert "no room for 1" in failed(jobs[0])
        failed(jobs[1])

    one, other = (job.refresh().failure for job in jobs)
    assert one is not None
    assert other is not None
    assert (one.type, one.message) == ("ValueError", "no room for 1")
    assert one.traceback is not None
    assert "in broken" in one.traceback
    assert "mainspring/worker" not in one.traceback
    assert one.fingerprint == other.fingerprint


def test_an_exception_that_the_policy_excludes_is_not_tried_again(app: Mainspring) -> None:
    @app.task(retry=Retry(max_attempts=5, base="10ms", never=(KeyError,)))
    def broken() -> None:
        raise KeyError("gone")

    job = broken.enqueue()
    with app.worker():
        failed(job)

    assert outcomes(job) == ["failed"]


def test_a_snooze_comes_back_later_and_costs_no_attempt(app: Mainspring) -> None:
    @app.task(retry=ONCE)
    def patient(ctx: Context) -> int:
        if ctx.fence < 3:
            raise Snooze("10ms")
        return ctx.attempt

    job = patient.enqueue()
    with app.worker():
        assert job.result(timeout=LONG) == 1

    assert outcomes(job) == ["snoozed", "snoozed", "succeeded"]


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), BaseException("no")])
def test_whatever_a_handler_raises_is_a_failure_and_the_worker_goes_on(app: Mainspring, error: BaseException) -> None:
    @app.task(retry=ONCE)
    def rude() -> None:
        raise error

    @app.task(retry=ONCE)
    async def rude_too() -> None:
        raise error

    @app.task
    def polite() -> int:
        return 1

    with app.worker(concurrency=1):
        assert type(error).__name__ in (rude_failure := _failure_type(rude.enqueue())), rude_failure
        assert type(error).__name__ in _failure_type(rude_too.enqueue())
        assert polite.enqueue().result(timeout=LONG) == 1


def _failure_type(job: JobHandle[object]) -> str:
    failed(job)
    failure = job.refresh().failure
    assert failure is not None
    return failure.type


def test_a_result_that_json_can_not_carry_is_a_clear_failure_and_not_tried_again(app: Mainspring) -> None:
    @app.task(retry=Retry(max_attempts=5, base="10ms"))
    def odd() -> object:
        return object()

    job = odd.enqueue()
    with app.worker():
        assert "the result: expected a value that JSON can carry" in failed(job)

    assert outcomes(job) == ["failed"]


class _Odd(tzinfo):
    """A zone that raises whenever it is asked anything, as when it is written as JSON."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def utcoffset(self, _: datetime | None) -> timedelta:
        raise self._error

    dst = utcoffset

    def tzname(self, _: datetime | None) -> str:
        raise self._error


def test_a_result_that_raises_while_it_is_encoded_is_a_failure() -> None:
    """Whoever made the attempt: a child process and a drain have no guard of their own."""
    result = datetime(2026, 1, 1, tzinfo=_Odd(RuntimeError("no offset")))

    outcome = execution.success(Task(name="work", handler=print), result)

    assert isinstance(outcome, Failed)
    assert (outcome.failure.message, outcome.retryable) == ("no offset", False)


@pytest.mark.parametrize("error", [RuntimeError("no offset"), MemoryError("no room"), SystemExit("no more")])
def test_a_result_that_raises_while_it_is_encoded_takes_nobody_with_it(app: Mainspring, error: BaseException) -> None:
    @app.task(retry=Retry(max_attempts=5, base="10ms"))
    def odd() -> object:
        return datetime(2026, 1, 1, tzinfo=_Odd(error))

    @app.task(retry=Retry(max_attempts=5, base="10ms"))
    async def odd_too() -> object:
        return datetime(2026, 1, 1, tzinfo=_Odd(error))

    @app.task
    def polite() -> int:
        return 1

    jobs = odd.enqueue(), odd_too.enqueue()
    with app.worker(concurrency=1):
        for job in jobs:
            assert str(error) in failed(job)
        assert polite.enqueue().result(timeout=LONG) == 1

    assert [outcomes(job) for job in jobs] == [["failed"], ["failed"]]


class _Touchy(type):
    def __instancecheck__(cls, instance: object) -> bool:
        raise RuntimeError("do not ask")


class _Error(Exception, metaclass=_Touchy): ...


def test_a_failure_of_which_nobody_can_say_whether_it_is_worth_another_try_is_recorded(app: Mainspring) -> None:
    @app.task(retry=Retry(on=(_Error,)))
    def broken() -> None:
        raise ValueError("no")

    @app.task(retry=Retry(on=(_Error,)))
    async def broken_too() -> None:
        raise ValueError("no")

    jobs = broken.enqueue(), broken_too.enqueue()
    with app.worker(concurrency=1):
        for job in jobs:
            assert "do not ask" in failed(job)


def test_a_handler_that_knows_when_to_try_again_is_tried_again_whatever_its_policy_covers() -> None:
    task = Task(name="work", handler=print, retry=Retry(on=(KeyError,)))

    outcome = execution.ending(task, RetryAfter("90s", "the server is busy"), None)

    assert isinstance(outcome, Failed)
    assert (outcome.retryable, outcome.after, outcome.failure.message) == (
        True,
        timedelta(seconds=90),
        "the server is busy",
    )


def test_what_can_not_even_be_told_is_recorded_as_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(execution, "failure_of", fail)

    outcome = execution.untold(Task(name="work", handler=print), ValueError("no"))

    assert isinstance(outcome, Failed)
    assert (outcome.failure.type, outcome.retryable) == ("ValueError", False)


@pytest.mark.parametrize(
    ("stop", "outcome"),
    [(CancelRequested("x"), Cancelled()), (WorkerStopped("x"), Returned()), (LeaseLost("x"), None)],
)
def test_a_stop_that_was_raised_in_a_task_group_is_taken_for_one(stop: BaseException, outcome: Outcome | None) -> None:
    wrapped = BaseExceptionGroup("several", [ValueError("no"), BaseExceptionGroup("inner", [stop])])

    assert execution.ending(Task(name="work", handler=print), wrapped, None) == outcome


def test_time_that_is_up_after_a_cancel_was_ignored_is_told_in_full() -> None:
    """What arrives in a thread has no words of its own, and the reason that was given first was another."""
    task = Task(name="work", handler=print, timeout=timedelta(seconds=2))

    outcome = execution.ending(task, TimeExpired(), CancelRequested("cancelled"))

    assert isinstance(outcome, TimedOut)
    assert outcome.failure.message == "the attempt took longer than its timeout of 2 s"


def test_an_endless_error_message_is_cut(app: Mainspring) -> None:
    @app.task(retry=ONCE)
    def verbose() -> None:
        raise ValueError("x" * 50_000_000)

    job = verbose.enqueue()
    with app.worker():
        failed(job)

    failure = job.refresh().failure
    assert failure is not None
    assert len(failure.message) < 20_000
    assert "characters left out" in failure.message


def test_an_exception_that_can_not_be_shown_is_recorded_all_the_same(app: Mainspring) -> None:
    class Shy(Exception):
        def __str__(self) -> str:
            raise RuntimeError("not telling")

    @app.task(retry=ONCE)
    def broken() -> None:
        raise Shy

    job = broken.enqueue()
    with app.worker():
        assert "can't be shown" in failed(job)


def test_a_job_whose_task_nobody_knows_stays_ready_and_holds_nobody_up(app: Mainspring, sender: Mainspring) -> None:
    strange = sender.enqueue("from.the.future", args=[1])

    @app.task
    def known() -> int:
        return 1

    with app.worker():
        assert known.enqueue().result(timeout=LONG) == 1

    assert strange.state is JobState.READY
    assert strange.attempts() == []


def test_a_task_that_is_registered_while_the_worker_runs_is_served(app: Mainspring) -> None:
    with app.worker():

        @app.task
        def late() -> int:
            return 1

        assert late.enqueue().result(timeout=LONG) == 1


def test_a_queue_that_came_too_late_to_be_served_is_named_once(
    app: Mainspring, caplog: pytest.LogCaptureFixture
) -> None:
    with app.worker():
        for name in ("late", "later"):
            app.task(name=name, queue="mail")(print)
        app.task(name="served")(print)
    app.task(name="too_late", queue="other")(print)

    assert [message for message in caplog.messages if "does not serve" in message] == [
        "the worker does not serve queue mail, because task late was registered after it had started; "
        "register it before, or tell the worker its queues"
    ]


def test_a_worker_that_was_told_its_queues_leaves_others_alone(
    app: Mainspring, caplog: pytest.LogCaptureFixture
) -> None:
    with app.worker(queues={"default": 1}):
        app.task(name="late", queue="mail")(print)

    assert "does not serve" not in caplog.text


def test_arguments_that_no_longer_fit_the_handler_are_a_failure(app: Mainspring, sender: Mainspring) -> None:
    job = sender.enqueue("greet", args=["not a number"])

    @app.task(retry=ONCE)
    def greet(n: int) -> None: ...

    with app.worker():
        assert "argument 'n': expected `int`" in failed(job)


def test_the_context_knows_its_attempt(app: Mainspring) -> None:
    seen: list[tuple[object, ...]] = []

    @app.task(timeout="1h")
    def look(ctx: Context) -> None:
        assert ctx.deadline is not None
        left = ctx.deadline - datetime.now(UTC)
        seen.append((ctx.job_id, ctx.attempt, ctx.fence, ctx.idempotency_key, left < timedelta(hours=1)))

    job = look.enqueue()
    with app.worker():
        job.result(timeout=LONG)

    assert seen == [(job.id, 1, 1, str(job.id), True)]


def test_the_context_may_be_passed_by_name(app: Mainspring) -> None:
    @app.task
    def look(n: int, *, ctx: Context) -> int:
        return n + ctx.attempt

    job = look.enqueue(1)  # type: ignore[call-arg]
    with app.worker():
        assert job.result(timeout=LONG) == 2


def test_what_a_handler_logs_and_its_progress_are_kept(app: Mainspring) -> None:
    @app.task
    def work(ctx: Context) -> None:
        ctx.log.info("half of %d", 10)
        ctx.log.warning("100% sure")
        ctx.progress(5, 10, "half")

    job = work.enqueue()
    with app.worker():
        job.result(timeout=LONG)

    assert [(line.level, line.message) for line in job.logs()] == [("info", "half of 10"), ("warning", "100% sure")]
    assert job.snapshot.progress == '{"done":5,"total":10,"note":"half"}'


def test_what_one_attempt_can_log_is_bounded(app: Mainspring) -> None:
    @app.task
    def chatty(ctx: Context) -> None:
        for _ in range(1_000):
            ctx.log.info("x" * 100_000)

    job = chatty.enqueue()
    with app.worker():
        job.result(timeout=LONG)

    lines = job.logs()
    assert sum(len(line.message) for line in lines) < 1_100_000
    assert lines[-1].message == "this attempt has logged too much; what follows is not kept"


def test_deep_recursion_is_a_failure_like_any_other(app: Mainspring) -> None:
    @app.task(retry=ONCE)
    def deep() -> None:
        deep()

    job = deep.enqueue()
    with app.worker():
        assert "recursion" in failed(job)


def test_rows_and_success_are_committed_together(app: Mainspring, url: str) -> None:
    execute(url, "CREATE TABLE effects (n INTEGER)")

    @app.task(retry=ONCE)
    def pay(ctx: Context, n: int) -> int:
        ctx.log("before")
        with ctx.transaction(result=n) as db:
            ctx.log("within")
            db.execute(f"INSERT INTO effects VALUES ({n})")
            if n == 2:
                raise ValueError("no")
        return n

    good, bad = pay.enqueue(1), pay.enqueue(2)
    with app.worker():
        assert good.result(timeout=LONG) == 1
        failed(bad)

    assert execute(url, "SELECT n FROM effects") == [(1,)]
    assert [line.message for line in good.logs()] == ["before", "within"]
    assert outcomes(good) == ["succeeded"]


def test_a_handler_that_fails_after_its_transaction_has_succeeded_and_is_mentioned(
    app: Mainspring, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task(retry=ONCE)
    def pay(ctx: Context) -> None:
        with ctx.transaction(result=1):
            pass
        raise RuntimeError("very important")

    job = pay.enqueue()
    with app.worker():
        assert job.result(timeout=LONG) == 1
        until(lambda: "had succeeded with its transaction when its handler failed" in caplog.text)

    assert "RuntimeError: very important" in caplog.text
    assert outcomes(job) == ["succeeded"]


def test_a_delay_beyond_all_bounds_is_cut(app: Mainspring) -> None:
    @app.task(retry=Retry(base="36525d", cap="36525d"))
    def broken() -> None:
        raise ValueError("no")

    job = broken.enqueue()
    with app.worker():
        until(lambda: job.state is JobState.RETRYING)


def test_a_worker_that_is_stopped_twice_stops_once(app: Mainspring) -> None:
    @app.task
    async def quick() -> int:
        return 1

    with app.worker() as node:
        assert quick.enqueue().result(timeout=LONG) == 1
        assert node.stop()


def test_a_setting_that_nobody_knows_is_refused(app: Mainspring) -> None:
    with pytest.raises(InvalidValue, match="no setting is named 'concurency', did you mean 'concurrency'"):
        app.worker(concurency=3).__enter__()  # type: ignore[call-arg]


def test_a_timeout_that_comes_while_a_handler_waits_for_the_store_harms_nobody(sqlite_url: str) -> None:
    app = Mainspring(sqlite_url)
    app.client.store.counts()

    @app.task
    def other() -> int:
        return 1

    @app.task(timeout="50ms", retry=ONCE)
    def waits() -> None:
        other.enqueue()

    with app.worker(concurrency=2):
        turn = app.client.store._db._writer._turn  # type: ignore[attr-defined]
        job = waits.enqueue()
        until(lambda: job.state is JobState.RUNNING)
        with turn:
            time.sleep(0.3)
        until(lambda: job.state.final)

        assert other.enqueue().result(timeout=LONG) == 1
    app.close()
