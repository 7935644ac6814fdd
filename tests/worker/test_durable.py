"""Durable jobs: what they have done is not done again, and what they wait for holds no worker."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from mainspring import Context, JobState, Mainspring, Retry
from mainspring.errors import InvalidValue, SignalRefused, StoreError
from mainspring.job_handle import JobHandle
from tests.support.databases import execute
from tests.support.waiting import until
from tests.worker import process_tasks
from tests.worker.children import failure, in_process
from tests.worker.endings import ended, outcomes

LONG = "60s"
ONCE = Retry(max_attempts=1)
AGAIN = Retry(max_attempts=3, base="1ms")


class Unlucky(Exception):
    pass


def blocked(job: JobHandle[Any]) -> bool:
    return job.state is JobState.BLOCKED


# --- steps ---------------------------------------------------------------------------------------------------


def test_a_step_that_was_done_is_not_done_again(app: Mainspring) -> None:
    called: list[str] = []

    def note(name: str) -> str:
        called.append(name)
        return f"{name} {len(called)}"

    @app.task(retry=AGAIN)
    def flow(ctx: Context) -> list[str]:
        found = [ctx.step("one", note, "one"), ctx.step("two", note, name="two")]
        if ctx.attempt == 1:
            raise Unlucky("once")
        return [*found, ctx.step("three", note, "three")]

    with app.worker():
        assert flow.enqueue().result(timeout=LONG) == ["one 1", "two 2", "three 3"]
    assert called == ["one", "two", "three"]


def test_a_replayed_job_goes_on_behind_its_steps(app: Mainspring) -> None:
    called: list[int] = []
    broken = [True]

    @app.task(retry=ONCE)
    def flow(ctx: Context) -> int:
        ctx.step("charge", called.append, 1)
        if broken:
            raise Unlucky("still")
        return len(called)

    job = flow.enqueue()
    with app.worker():
        assert ended(job) is JobState.FAILED
        broken.clear()
        job.replay()
        assert job.result(timeout=LONG) == 1


def test_the_first_run_sees_what_later_ones_see(app: Mainspring) -> None:
    def pair() -> Any:
        return 1, {2: "x"}

    def day() -> date:
        return date(2030, 1, 2)

    def lies() -> int:
        return "no number"  # type: ignore[return-value]

    seen: list[list[object]] = []

    @app.task(retry=AGAIN)
    def flow(ctx: Context) -> None:
        seen.append([ctx.step("pair", pair), ctx.step("day", day), ctx.step("lies", lies)])
        if ctx.attempt == 1:
            raise Unlucky("once")

    with app.worker():
        flow.enqueue().result(timeout=LONG)
    assert seen == 2 * [[[1, {"2": "x"}], date(2030, 1, 2), "no number"]]


def test_coroutines_await_their_steps_and_no_plain_function_holds_up_the_loop(app: Mainspring) -> None:
    called: list[object] = []

    async def on_the_loop(number: int) -> int:
        await asyncio.sleep(0)
        called.append(threading.get_ident())
        return number

    def in_a_thread(number: int) -> int:
        called.append(threading.get_ident())
        return number

    @app.task(retry=AGAIN)
    async def flow(ctx: Context) -> list[int]:
        found = await asyncio.gather(ctx.step("a", on_the_loop, 1), ctx.step("b", in_a_thread, 2))
        if ctx.attempt == 1:
            called.append(threading.get_ident())
            raise Unlucky("once")
        return [*found, await ctx.step("c", on_the_loop, number=3), await ctx.step("d", lambda: on_the_loop(4))]

    with app.worker():
        assert flow.enqueue().result(timeout=LONG) == [1, 2, 3, 4]
    assert called.count(called[-1]) == len(called) - 1 == 4


def test_what_a_coroutine_leaves_to_a_thread_takes_its_steps_there(app: Mainspring) -> None:
    def helper(ctx: Context) -> int:
        return int(ctx.step("inner", lambda: 7))

    @app.task(retry=ONCE)
    async def flow(ctx: Context) -> int:
        return await asyncio.to_thread(helper, ctx)

    with app.worker():
        assert flow.enqueue().result(timeout=LONG) == 7


def test_a_step_that_failed_may_be_tried_again_by_its_handler(app: Mainspring) -> None:
    tries: list[int] = []

    def unlucky() -> int:
        tries.append(1)
        if len(tries) < 3:
            raise Unlucky("not yet")
        return len(tries)

    @app.task(retry=ONCE)
    def flow(ctx: Context) -> int:
        for _ in range(2):
            with suppress(Unlucky):
                ctx.step("try", unlucky)
        return int(ctx.step("try", unlucky))

    with app.worker():
        assert flow.enqueue().result(timeout=LONG) == 3


def test_two_steps_of_one_name_are_refused(app: Mainspring) -> None:
    @app.task(retry=ONCE)
    def flow(ctx: Context) -> None:
        for _ in range(2):
            ctx.step("x", print)

    with app.worker():
        told = failure(flow.enqueue())
    assert told.type == "mainspring.errors.InvalidValue"
    assert told.message == (
        "a step named 'x' was run already in this attempt; give each its own name, such as f'x {i}'"
    )


@pytest.mark.parametrize("name", ["", "x" * 201, "@sleep 3d", "a\0b", "\udcff", 7])
def test_a_name_by_which_it_could_not_be_found_is_refused(app: Mainspring, name: str) -> None:
    @app.task(retry=ONCE)
    def flow(ctx: Context) -> None:
        ctx.step(name, print)

    with app.worker():
        told = failure(flow.enqueue())
    assert told.type == "mainspring.errors.InvalidValue"
    assert told.message.startswith("expected the name of a step ")


@pytest.mark.parametrize(
    "returned", [object(), {1, object()}, float("nan"), "a\0b"], ids=["object", "set", "nan", "nul"]
)
@pytest.mark.parametrize("awaits", [False, True], ids=["plain", "coroutine"])
def test_a_result_that_can_not_be_kept_fails_the_job_for_good(app: Mainspring, returned: object, awaits: bool) -> None:
    """The step has had its effect; another attempt would have it again."""
    called: list[int] = []

    def effect() -> object:
        called.append(1)
        return returned

    if awaits:

        @app.task(name="flow", retry=AGAIN)
        async def aflow(ctx: Context) -> None:
            await ctx.step("charge", effect)

    else:

        @app.task(name="flow", retry=AGAIN)
        def flow(ctx: Context) -> None:
            ctx.step("charge", effect)

    with app.worker():
        told = failure(app.enqueue("flow"))
    assert told.message.startswith("step 'charge' has run, but the result: expected ")
    assert called == [1]


@pytest.mark.parametrize(
    "inner",
    [lambda ctx: ctx.step("b", print), lambda ctx: ctx.sleep("1h"), lambda ctx: ctx.wait_signal("go")],
    ids=["step", "sleep", "signal"],
)
def test_nothing_durable_stands_inside_a_step(app: Mainspring, inner: Callable[[Context], object]) -> None:
    @app.task(retry=ONCE)
    def flow(ctx: Context) -> None:
        ctx.step("a", inner, ctx)

    with app.worker():
        told = failure(flow.enqueue())
    assert (told.type, told.message.endswith("to stand beside other steps, got one inside step 'a'")) == (
        "mainspring.errors.InvalidValue",
        True,
    )


def test_a_coroutine_function_is_no_step_of_a_plain_handler(app: Mainspring) -> None:
    async def later() -> None: ...

    @app.task(retry=ONCE)
    def flow(ctx: Context) -> None:
        ctx.step("a", later)

    with app.worker():
        told = failure(flow.enqueue())
    assert told.message.startswith("expected a plain function for step 'a', because its handler is one")


def test_what_can_not_be_called_is_no_step(app: Mainspring) -> None:
    @app.task(retry=ONCE)
    def flow(ctx: Context) -> None:
        ctx.step("a", 7)  # type: ignore[call-overload]

    with app.worker():
        assert failure(flow.enqueue()).message == "expected a function for the step to call, got: 7"


def test_a_timeout_ends_a_step_that_computes(app: Mainspring, caplog: pytest.LogCaptureFixture) -> None:
    over = threading.Event()

    def endless() -> None:
        while not over.is_set():
            pass

    @app.task(retry=ONCE, timeout="50ms")
    def flow(ctx: Context) -> None:
        ctx.step("endless", endless)

    job = flow.enqueue()
    with app.worker():
        assert ended(job) is JobState.FAILED
        over.set()
    assert outcomes(job) == ["timed_out"]
    assert job.steps() == []
    assert "its worker waits no longer" not in caplog.text


@pytest.mark.parametrize("wish", ["cancel", "pause"])
def test_a_step_is_a_point_at_which_a_wish_takes_effect(app: Mainspring, wish: str) -> None:
    called: list[int] = []
    begun = threading.Event()

    @app.task(retry=ONCE)
    def flow(ctx: Context) -> None:
        begun.set()
        for number in range(100_000):
            ctx.step(f"step {number}", called.append, number)
            time.sleep(0.001)

    job = flow.enqueue()
    with app.worker():
        begun.wait()
        getattr(job, wish)()
        until(lambda: job.state is (JobState.CANCELLED if wish == "cancel" else JobState.PAUSED))
    assert len(called) == len(job.steps()) < 100_000


# --- steps in processes --------------------------------------------------------------------------------------


def test_steps_sleeps_and_signals_in_a_process(app: Mainspring, tmp_path: Path) -> None:
    flow = in_process(app, process_tasks.two_steps_and_a_sleep, retry=AGAIN)
    job = flow.enqueue(str(tmp_path), fails=True)

    with app.worker():
        until(lambda: blocked(job))
        job.signal("go", 7)
        assert job.result(timeout=LONG) == [1, 1, 7]

    assert outcomes(job) == ["suspended", "failed", "suspended", "succeeded"]
    assert [step.name for step in job.steps()] == ["first", "@sleep 0.05s", "failing", "second", "@signal go"]


def test_a_coroutine_that_is_isolated_in_a_process_takes_its_steps_there(app: Mainspring, tmp_path: Path) -> None:
    flow = app.task(retry=ONCE)(process_tasks.async_steps)
    job = flow.enqueue(str(tmp_path))
    execute(app.client.url, f"UPDATE {_jobs(app)} SET losses = 1")
    job.signal("go", 7)

    with app.worker():
        assert job.result(timeout=LONG) == [1, 7]


def _jobs(app: Mainspring) -> str:
    return "mainspring_jobs" if app.client.url.startswith("sqlite") else "mainspring.jobs"


# --- sleeps --------------------------------------------------------------------------------------------------


def test_a_sleeping_job_holds_no_slot(app: Mainspring) -> None:
    @app.task(retry=ONCE)
    def sleeper(ctx: Context) -> None:
        ctx.sleep("1h")

    @app.task(retry=ONCE)
    def other() -> int:
        return 7

    job = sleeper.enqueue()
    with app.worker(concurrency=1):
        until(lambda: job.state is JobState.SCHEDULED)
        assert other.enqueue().result(timeout=LONG) == 7
        assert job.snapshot.attempt == 0
        (reason,) = job.explain()
        assert (reason.code, reason.sentence[:16]) == ("not_due", "it sleeps until ")

        assert job.cancel() is JobState.CANCELLED


def test_no_handler_swallows_a_sleep(app: Mainspring) -> None:
    taken_for_errors: list[Exception] = []

    @app.task(retry=ONCE)
    def flow(ctx: Context) -> int:
        try:
            ctx.sleep("10ms")
        except Exception as error:  # noqa: BLE001
            taken_for_errors.append(error)
            return 0
        return 1

    job = flow.enqueue()
    with app.worker():
        assert job.result(timeout=LONG) == 1
    assert outcomes(job) == ["suspended", "succeeded"]
    assert taken_for_errors == []


def test_sleeps_are_known_by_their_length_and_number_or_by_their_name(app: Mainspring) -> None:
    @app.task(retry=ONCE)
    def flow(ctx: Context) -> None:
        ctx.sleep("20ms")
        ctx.sleep(0.02)
        ctx.sleep("10ms")
        ctx.sleep("10ms", name="cool off")

    job = flow.enqueue()
    with app.worker():
        job.result(timeout=LONG)
    assert [step.name for step in job.steps()] == ["@sleep 0.02s", "@sleep 0.02s 2", "@sleep 0.01s", "@sleep cool off"]
    assert outcomes(job) == [*4 * ["suspended"], "succeeded"]


def test_a_sleep_begun_by_an_attempt_that_failed_is_not_begun_again(app: Mainspring) -> None:
    @app.task(retry=AGAIN)
    def flow(ctx: Context) -> int:
        try:
            ctx.sleep("1h", name="long")
        except BaseException:
            if ctx.fence == 1:
                raise Unlucky("in the midst") from None
            raise
        return 1

    job = flow.enqueue()
    with app.worker():
        until(lambda: outcomes(job) == ["failed", "suspended"])
    (step,) = job.steps()
    assert job.refresh().run_at >= step.until  # type: ignore[operator]


def test_a_timeout_counts_for_each_attempt_and_not_for_sleeps(app: Mainspring) -> None:
    @app.task(retry=ONCE, timeout="1s")
    def flow(ctx: Context) -> int:
        ctx.sleep("1100ms")
        return 1

    with app.worker():
        assert flow.enqueue().result(timeout=LONG) == 1


@pytest.mark.parametrize("length", ["-1s", "soon", -1, None])
def test_a_sleep_of_no_length_is_refused(app: Mainspring, length: Any) -> None:
    @app.task(retry=ONCE)
    def flow(ctx: Context) -> None:
        ctx.sleep(length)

    with app.worker():
        assert failure(flow.enqueue()).message.startswith("expected the length of a sleep to be ")


# --- signals -------------------------------------------------------------------------------------------------


def test_a_job_waits_for_its_signal_and_another_job_runs_meanwhile(app: Mainspring) -> None:
    @app.task(retry=ONCE)
    def flow(ctx: Context) -> Any:
        return ctx.wait_signal("approved")

    @app.task
    def other() -> int:
        return 7

    job = flow.enqueue()
    with app.worker(concurrency=1):
        until(lambda: blocked(job))
        assert other.enqueue().result(timeout=LONG) == 7
        app.signal(job.id, "approved", {"by": ["ada"]})
        assert job.result(timeout=LONG) == {"by": ["ada"]}
    with pytest.raises(SignalRefused, match="has ended as succeeded"):
        job.signal("approved")


def test_coroutines_wait_for_signals_too_and_twins_send_them(app: Mainspring) -> None:
    @app.task(retry=ONCE)
    async def flow(ctx: Context) -> list[object]:
        return [await ctx.wait_signal("go"), await ctx.wait_signal("go", timeout="1ms"), await ctx.wait_signal("on")]

    async def send(job: JobHandle[Any]) -> None:
        await app.asignal(job, "go", 1)
        await job.asignal("on", 2)
        assert await job.asteps() == job.steps()

    job = flow.enqueue()
    asyncio.run(send(job))
    with app.worker():
        assert job.result(timeout=LONG) == [1, None, 2]
    assert [step.name for step in job.steps()] == ["@signal go", "@signal go 2", "@signal on"]


def test_a_wait_ends_after_its_time(app: Mainspring) -> None:
    @app.task(retry=ONCE)
    def flow(ctx: Context) -> Any:
        return [ctx.wait_signal("never", timeout="30ms"), ctx.wait_signal("never", timeout=0)]

    job = flow.enqueue()
    with app.worker():
        assert job.result(timeout=LONG) == [None, None]
    assert outcomes(job) == ["suspended", "succeeded"]


@pytest.mark.parametrize("value", [object(), "x\0", float("inf")])
def test_a_value_that_can_not_be_carried_is_refused(app: Mainspring, value: object) -> None:
    job = app.enqueue("nobody")

    with pytest.raises(InvalidValue, match=r"^the value of the signal: expected"):
        job.signal("go", value)


def test_what_a_wait_lacks_is_told_with_how_to_send_it(app: Mainspring) -> None:
    @app.task(retry=ONCE)
    def flow(ctx: Context, timeout: str | None) -> Any:
        return ctx.wait_signal("approved", timeout)

    limited, endless = flow.enqueue("1h"), flow.enqueue(None)
    with app.worker():
        until(lambda: blocked(limited) and blocked(endless))
        (first,), (second,) = limited.explain(), endless.explain()

    assert (first.code, second.code) == ("signal", "signal")
    assert first.sentence.startswith("it waits for signal 'approved' until 20")
    assert first.estimate is not None
    assert second.sentence == "it waits for signal 'approved', and nobody has sent it"
    assert second.estimate is None
    assert second.lift == f"send it with `mainspring jobs signal {endless.id} approved`"


# --- transactions --------------------------------------------------------------------------------------------


@pytest.fixture
def effects(app: Mainspring) -> Callable[[], int]:
    """A table of the application's own, and how many rows it has."""
    assert app.jobs() == []
    execute(app.client.url, "CREATE TABLE effects (number INTEGER)")
    return lambda: len(execute(app.client.url, "SELECT * FROM effects"))


@pytest.mark.parametrize("process", [False, True], ids=["thread", "process"])
def test_rows_are_written_with_the_step_that_writes_them(
    app: Mainspring, effects: Callable[[], int], process: bool
) -> None:
    flow = (
        in_process(app, process_tasks.write_in_a_step, retry=AGAIN)
        if process
        else app.task(retry=AGAIN)(process_tasks.write_in_a_step)
    )
    job = flow.enqueue()

    with app.worker():
        assert job.result(timeout=LONG) == 7

    assert effects() == 1
    assert outcomes(job) == ["failed", "succeeded"]
    assert [(step.name, step.result) for step in job.steps()] == [("write", "7")]


def test_a_step_whose_function_fails_behind_its_block_is_done_all_the_same(
    app: Mainspring, effects: Callable[[], int]
) -> None:
    @app.task(retry=AGAIN)
    def flow(ctx: Context) -> Any:
        def write() -> None:
            with ctx.transaction(result="written") as db:
                db.execute("INSERT INTO effects VALUES (1)")
            raise Unlucky("too late")

        return ctx.step("write", write)

    with app.worker():
        assert flow.enqueue().result(timeout=LONG) == "written"
    assert effects() == 1


def test_a_block_outside_of_steps_ends_the_job_and_what_comes_after_it_is_refused(
    app: Mainspring, effects: Callable[[], int]
) -> None:
    refused: list[str] = []

    @app.task(retry=ONCE)
    def flow(ctx: Context) -> Any:
        ctx.step("one", print)
        with ctx.transaction(result="done") as db:
            db.execute("INSERT INTO effects VALUES (1)")
        late: list[Callable[[], object]] = [
            lambda: ctx.step("two", print),
            lambda: ctx.sleep("1h"),
            lambda: ctx.wait_signal("go"),
        ]
        for call in late:
            try:
                call()
            except StoreError as error:
                refused.append(str(error))

    with app.worker():
        assert flow.enqueue().result(timeout=LONG) == "done"
    assert refused == 3 * ["the job has succeeded with its transaction block, so nothing can come after that"]


def test_a_step_has_one_block(app: Mainspring, effects: Callable[[], int]) -> None:
    @app.task(retry=ONCE)
    def flow(ctx: Context) -> None:
        def write() -> None:
            for _ in range(2):
                with ctx.transaction() as db:
                    db.execute("INSERT INTO effects VALUES (1)")

        ctx.step("write", write)

    with app.worker():
        assert failure(flow.enqueue()).message.startswith("step 'write' was recorded with its first transaction block")
    assert effects() == 1


# --- what handlers must not do -------------------------------------------------------------------------------


def test_a_handler_that_catches_its_sleep_sleeps_all_the_same(app: Mainspring) -> None:
    ran: list[str] = []

    @app.task
    def flow(ctx: Context) -> str:
        with suppress(BaseException):
            ctx.sleep("1h")
        with suppress(BaseException):
            ctx.step("refund", ran.append, "refunded")
        return "too soon"

    job = flow.enqueue()
    with app.worker():
        until(lambda: job.state is JobState.SCHEDULED)

    assert ran == []
    assert [attempt.outcome for attempt in job.attempts()] == ["suspended"]


def test_a_handler_that_catches_the_refusal_of_a_result_fails_all_the_same(app: Mainspring) -> None:
    @app.task(retry=AGAIN)
    def flow(ctx: Context) -> str:
        with suppress(Exception):
            ctx.step("odd", object)
        return "fine"

    job = flow.enqueue()
    with app.worker():
        assert ended(job) is JobState.FAILED
    assert outcomes(job) == ["failed"]
    assert "odd" in failure(job).message


def test_steps_and_sleeps_in_a_transaction_block_are_refused_before_anything_is_done(app: Mainspring) -> None:
    ran: list[str] = []

    @app.task
    def flow(ctx: Context) -> None:
        with ctx.transaction(result="done"):
            with pytest.raises(StoreError, match="can't stand inside a transaction block"):
                ctx.step("one", ran.append, "one")
            with pytest.raises(StoreError, match="can't stand inside a transaction block"):
                ctx.sleep("1h")

    with app.worker():
        assert flow.enqueue().result(timeout=LONG) == "done"
    assert ran == []


def test_jobs_are_not_added_in_a_step_which_later_attempts_skip(app: Mainspring) -> None:
    @app.task
    def other() -> None: ...

    @app.task(retry=ONCE)
    def flow(ctx: Context) -> None:
        ctx.step("fan out", lambda: str(ctx.add(other)))

    job = flow.enqueue()
    with app.worker():
        assert ended(job) is JobState.FAILED
    assert "expected jobs to be added outside of steps" in failure(job).message
