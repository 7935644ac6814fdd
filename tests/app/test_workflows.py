"""Workflows as users write them: results passed on, fan-out and fan-in, undoing, nesting, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from mainspring import (
    Context,
    IfFailed,
    InvalidPayload,
    InvalidValue,
    JobFailed,
    JobNotFound,
    JobState,
    KeyTaken,
    Mainspring,
    Parent,
    ReplayRefused,
    Retry,
    StoreError,
    TaskNotFound,
    Workflow,
    every,
)
from mainspring.errors import MainspringError
from mainspring.model.failure import Failure
from mainspring.model.job import Job
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Failed, Succeeded
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock, drain
from mainspring.workflow_handle import WorkflowHandle
from tests.support.databases import connected
from tests.support.factories import opened_session

ONCE = Retry(max_attempts=1)


@pytest.fixture
def app(url: str, clock: SettableClock) -> Any:
    made = Mainspring(url, clock=clock)
    yield made
    made.close()


def double(number: int) -> int:
    return 2 * number


def total(numbers: list[int]) -> int:
    return sum(numbers)


def states(run: WorkflowHandle[Any]) -> dict[str, int]:
    return {state.value: count for state, count in run.progress().items()}


def test_results_are_passed_on_by_reference_wherever_they_stand(app: Mainspring) -> None:
    @app.task
    def tell(first: int, *rest: int, named: dict[str, list[int]], **more: int) -> object:
        return [first, list(rest), named, more]

    make = app.task(double)
    with app.workflow("tale") as wf:
        two, four, six = wf.add(make, 1), wf.add(make, 2), wf.add(make, number=3)
        wf.add(tell, two, 1, four, named={"a": [six, 7, two]}, extra=four)
    run = wf.enqueue()
    drain(app)

    assert run.result() == [2, [1, 4], {"a": [6, 7, 2]}, {"extra": 4}]
    assert states(run) == {"succeeded": 4}


def test_a_map_over_a_result_gathers_its_results_in_order(app: Mainspring) -> None:
    @app.task
    def numbers(count: int) -> list[int]:
        return list(range(count))

    @app.task
    def scale(number: int, factor: int, *, offset: int = 0) -> int:
        return number * factor + offset

    gather = app.task(total)
    with app.workflow("maps") as wf:
        factor = wf.add(numbers, 1)
        parts = wf.map(scale, wf.add(numbers, 25), 3, offset=1)
        wf.add(gather, parts)
    run = wf.enqueue()
    drain(app)

    assert factor.name == "numbers"
    assert run.result() == sum(3 * n + 1 for n in range(25))
    (members,) = [job for job in run.jobs() if isinstance(job, WorkflowHandle)]
    assert members.result() == [3 * n + 1 for n in range(25)]
    assert [job.result() for job in members.jobs()] == members.result()


def test_a_map_may_be_over_a_list_that_is_known_or_over_another_map_and_over_nothing(app: Mainspring) -> None:
    make, gather = app.task(double), app.task(total)
    with app.workflow("maps") as wf:
        wf.add(gather, wf.map(make, wf.map(make, [1, 2, 3])))
    run = wf.enqueue()
    with app.workflow("nothing") as nothing:
        nothing.add(gather, nothing.map(make, []))
    empty = nothing.enqueue()
    drain(app)

    assert (run.result(), empty.result()) == (24, 0)


def test_a_map_over_what_is_no_list_fails_and_makes_nothing(app: Mainspring) -> None:
    make = app.task(double)
    with app.workflow("wrong") as wf:
        wf.map(make, wf.add(make, 1))
    run = wf.enqueue()
    drain(app)

    with pytest.raises(JobFailed, match=r"expected a list to map 'double' over, got: 2"):
        run.result()
    assert states(run) == {"succeeded": 1, "failed": 1}


def test_an_item_that_the_handler_does_not_take_fails_the_map_and_makes_nothing(app: Mainspring) -> None:
    make = app.task(double)

    @app.task
    def things() -> list[object]:
        return [1, "two"]

    with app.workflow("wrong") as wf:
        wf.map(make, wf.add(things))
    run = wf.enqueue()
    drain(app)

    with pytest.raises(JobFailed, match=r"argument 'number': expected `int`, got `str`"):
        run.result()
    assert len(run.jobs()) == 2


def test_an_argument_that_turns_out_wrong_fails_its_job_and_cancels_what_comes_after(app: Mainspring) -> None:
    @app.task
    def word() -> str:
        return "word"

    make = app.task(retry=ONCE)(double)
    with app.workflow("wrong") as wf:
        wf.add(make, wf.add(make, wf.add(word)))
    run = wf.enqueue()
    drain(app)

    with pytest.raises(JobFailed, match=r"1 of 3 jobs failed: double .*argument 'number': expected `int`, got `str`"):
        run.result()
    assert states(run) == {"succeeded": 1, "failed": 1, "cancelled": 1}


def test_what_is_undone_is_undone_in_reverse_order_if_the_workflow_fails(app: Mainspring) -> None:
    done: list[str] = []

    @app.task
    def book(what: str) -> str:
        done.append(f"book {what}")
        return f"{what} 1"

    @app.task(retry=ONCE)
    def unbook(what: str, booking: str) -> None:
        done.append(f"unbook {booking}")
        if what == "hotel":
            raise ValueError("no answer")

    @app.task(retry=ONCE)
    def pay(*bookings: str) -> None:
        raise ValueError("no money")

    with app.workflow("trip") as wf:
        flight = wf.add(book, "flight")
        hotel = wf.add(book.using(after=[flight]), "hotel")
        flight.on_failure(unbook, "flight", flight)
        hotel.on_failure(unbook, "hotel", booking=hotel)
        wf.add(pay, flight, hotel).on_failure(unbook, "nothing", "never")
    run = wf.enqueue()
    drain(app)

    assert done == ["book flight", "book hotel", "unbook hotel 1", "unbook flight 1"]
    with pytest.raises(JobFailed, match=r"2 of 5 jobs failed: .*pay .*: no money"):
        run.result()
    with pytest.raises(ReplayRefused, match=r"what its jobs did was undone; start another"):
        run.replay()


def broken_trip(app: Mainspring, done: list[str], **undo: Any) -> WorkflowHandle[Any]:
    """Return a workflow that has failed, and begins to undo its one job that succeeded."""

    @app.task
    def book(number: int) -> int:
        return number

    @app.task(retry=ONCE, **undo)
    def unbook(number: int) -> None:
        done.append(f"unbook {number}")
        if len(done) == 1:
            raise ValueError("no answer")

    @app.task(retry=ONCE)
    def pay(number: int) -> None:
        raise ValueError("no money")

    with app.workflow("trip") as wf:
        wf.add(pay, wf.add(book, 1).on_failure(unbook, 1))
    return wf.enqueue()


def test_what_undoes_has_no_key_that_another_could_have(app: Mainspring) -> None:
    done: list[str] = ["before"]
    run = broken_trip(app, done, key="unbook:{number}")
    app.enqueue("unbook", [1], run_after="1h")
    drain(app)

    assert done == ["before", "unbook 1"]
    assert run.state is JobState.FAILED


def test_what_undoes_can_be_replayed_by_itself(app: Mainspring) -> None:
    done: list[str] = []
    run = broken_trip(app, done)
    drain(app)
    (undo,) = app.jobs(task="unbook")
    assert undo.state is JobState.FAILED

    assert undo.replay() is JobState.READY
    drain(app)
    assert (done, undo.state, run.state) == (["unbook 1", "unbook 1"], JobState.SUCCEEDED, JobState.FAILED)


def test_to_cancel_a_workflow_that_undoes_what_it_did_does_not_keep_it_from_that(app: Mainspring) -> None:
    done: list[str] = ["before"]
    run = broken_trip(app, done)
    store = app.client.store
    assert isinstance(store, SqlStore)
    session = opened_session(store)
    for _ in range(2):
        (job,) = store.claim(session, "default", 1)
        task = app.tasks.get(job.task)
        outcome = Succeeded("1") if task.name == "book" else Failed(Failure(type="E", message="e"))
        store.settle([settle(job, outcome)])
    store.release()
    assert [job.state for job in app.jobs(task="unbook")] == [JobState.READY]

    run.cancel()
    drain(app)
    assert (done, run.state) == (["before", "unbook 1"], JobState.FAILED)


def test_a_map_gathers_what_it_was_made_of_and_not_what_was_added(app: Mainspring) -> None:
    @app.task
    def crawl(ctx: Context, page: int) -> int:
        if page < 10:
            ctx.add(crawl, 10 * page)
        return page

    gather = app.task(total)
    with app.workflow("crawler") as wf:
        wf.add(gather, wf.map(crawl, [1, 2]))
    run = wf.enqueue()
    drain(app)

    assert (run.result(), sorted(job.result() for job in app.jobs(task="crawl") if job.snapshot.plan is None)) == (
        3,
        [1, 2, 10, 20],
    )


def test_a_request_that_is_repeated_gets_its_job_though_its_parent_is_gone(
    app: Mainspring, clock: SettableClock
) -> None:
    @app.task(retry=ONCE)
    def fail() -> None:
        raise ValueError("broken")

    make = app.task(double)
    parent = fail.enqueue()
    drain(app)
    request = make.using(after=[Parent(parent, "run")], idempotency_key="once", run_after="90d")
    first = request.enqueue(1)
    clock.advance("40d")
    app.client.store.prune(timedelta(days=30))
    with pytest.raises(JobNotFound):
        parent.refresh()

    assert request.enqueue(1) == first


def test_a_child_takes_no_others_place(app: Mainspring) -> None:
    make = app.task(double)
    parent = make.enqueue(1)

    with pytest.raises(InvalidValue, match=r"expected no parents with if_taken='replace'"):
        make.using(after=[parent], key="k", if_taken="replace").enqueue(2)


def test_what_succeeds_is_not_undone(app: Mainspring) -> None:
    make = app.task(double)
    with app.workflow("fine") as wf:
        wf.add(make, 1).on_failure(make, 2)
    run = wf.enqueue()
    drain(app)

    assert (run.result(), states(run)) == (2, {"succeeded": 1})


def test_a_workflow_is_replayed_from_the_failed_part_only(app: Mainspring) -> None:
    healed: list[bool] = []
    ran: list[str] = []

    @app.task
    def fetch() -> int:
        ran.append("fetch")
        return 1

    @app.task(retry=ONCE)
    def parse(number: int) -> int:
        ran.append("parse")
        if not healed:
            raise ValueError("broken")
        return number + 1

    gather = app.task(total)
    with app.workflow("etl") as wf:
        wf.add(gather, [wf.add(parse, wf.add(fetch)), wf.add(fetch)])
    run = wf.enqueue()
    drain(app)
    assert run.state is JobState.FAILED
    healed.append(True)

    assert run.replay() is JobState.BLOCKED
    drain(app)
    assert (run.result(), ran) == (3, ["fetch", "parse", "fetch", "parse"])


def test_a_job_of_it_that_is_replayed_brings_the_workflow_back_with_what_came_after(app: Mainspring) -> None:
    healed: list[bool] = []

    @app.task(retry=ONCE)
    def parse() -> int:
        if not healed:
            raise ValueError("broken")
        return 1

    gather = app.task(total)
    with app.workflow("etl") as wf:
        wf.add(gather, [wf.add(parse)])
    run = wf.enqueue()
    drain(app)
    healed.append(True)

    run.jobs()[0].replay()
    assert run.state is JobState.BLOCKED
    drain(app)
    assert run.result() == 1


def test_a_workflow_is_declared_once_and_enqueued_like_a_task(app: Mainspring) -> None:
    make, gather = app.task(double), app.task(total)

    @app.workflow
    def etl(wf: Workflow, numbers: list[int], times: int = 1) -> None:
        wf.add(gather, wf.map(make, numbers * times))

    run = etl.enqueue([1, 2], times=2)
    by_name = app.enqueue("etl", args=[[5]])
    drain(app)

    assert (run.result(), by_name.result()) == (12, 10)
    assert isinstance(run, WorkflowHandle)
    assert isinstance(app.job(by_name.id), WorkflowHandle)
    with pytest.raises(InvalidPayload, match=r"argument 'numbers': expected `array`, got `int`"):
        etl.enqueue(3)  # type: ignore[arg-type]


def test_a_declared_workflow_has_the_result_of_the_job_that_it_returns_and_may_be_empty(app: Mainspring) -> None:
    make = app.task(double)

    @app.workflow(name="first", queue="other")
    def first_of(wf: Workflow, count: int) -> Any:
        nodes = [wf.add(make, n + 1) for n in range(count)]
        return nodes[0] if nodes else None

    some, none = first_of.enqueue(3), first_of.enqueue(0)
    drain(app)

    assert (some.result(), none.result()) == (2, None)
    assert some.snapshot.queue == "other"


def test_a_declared_workflow_that_returns_anything_else_fails_and_makes_nothing(app: Mainspring) -> None:
    make = app.task(double)

    @app.workflow(retry=ONCE)
    def odd(wf: Workflow) -> object:
        wf.add(make, 1)
        return 5

    run = odd.enqueue()
    drain(app)

    with pytest.raises(
        JobFailed, match=r"expected workflow 'odd' to return the job whose result is its own, or nothing"
    ):
        run.result()
    assert app.jobs(task="double") == []


def test_workflows_nest(app: Mainspring) -> None:
    make, gather = app.task(double), app.task(total)

    @app.workflow
    def inner(wf: Workflow, numbers: list[int]) -> None:
        wf.add(gather, wf.map(make, numbers))

    @app.workflow
    def outer(wf: Workflow) -> None:
        first = wf.add(inner, [1, 2])
        wf.add(gather, [first, wf.add(inner.using(after=[first]), [3])])

    run = outer.enqueue()
    with app.workflow("over") as wf:
        wf.map(inner, [[1], [2, 3]])
    mapped = wf.enqueue()
    drain(app)

    assert (run.result(), mapped.result()) == (12, [2, 10])


def test_a_nested_workflow_that_fails_fails_the_whole_and_both_are_replayed_from_there(app: Mainspring) -> None:
    healed: list[bool] = []

    @app.task(retry=ONCE)
    def fragile(number: int) -> int:
        if number == 2 and not healed:
            raise ValueError("broken")
        return number

    gather = app.task(total)

    @app.workflow
    def inner(wf: Workflow, numbers: list[int]) -> None:
        wf.add(gather, wf.map(fragile, numbers))

    with app.workflow("outer") as wf:
        wf.add(gather, [wf.add(inner, [1, 2, 3]), wf.add(inner, [4])])
    run = wf.enqueue()
    drain(app)
    with pytest.raises(JobFailed, match=r"1 of 3 jobs failed: inner .*: 1 of 2 jobs failed: fragile .*1 of 3 jobs"):
        run.result()
    healed.append(True)

    run.replay()
    drain(app)
    assert run.result() == 10


def test_a_workflow_can_be_the_target_of_a_schedule(app: Mainspring, clock: SettableClock) -> None:
    make = app.task(double)

    @app.schedule(every("1h"))
    @app.workflow
    def hourly(wf: Workflow) -> None:
        wf.add(make, 21)

    drain(app)
    clock.advance(3600)
    drain(app)

    (run,) = app.jobs(task="hourly")
    assert (run.result(), run.snapshot.schedule) == (42, "hourly")


def test_a_key_stands_for_one_unfinished_workflow(app: Mainspring) -> None:
    make = app.task(double)

    def run() -> WorkflowHandle[Any]:
        with app.workflow("daily", key="2026-11-15") as wf:
            wf.add(make, 1)
        return wf.enqueue()

    first, second = run(), run()
    assert first == second
    assert len(app.jobs(task="double")) == 1
    drain(app)
    assert run() != first


def test_a_job_of_it_whose_key_is_taken_leaves_nothing_half_made(app: Mainspring) -> None:
    keyed = app.task(name="keyed", key="{number}")(double)
    keyed.enqueue(7)
    with app.workflow("clash") as wf:
        wf.add(keyed, 6)
        wf.add(keyed, 7)

    with pytest.raises(KeyTaken, match=r"task 'keyed' on which others depend can't be made, because another"):
        wf.enqueue()
    assert len(app.jobs()) == 1


def test_a_map_of_jobs_whose_keys_clash_fails_with_the_reason_unless_they_have_none(app: Mainspring) -> None:
    keyed = app.task(name="keyed", key="{number}")(double)
    with app.workflow("clash") as wf:
        wf.map(keyed, [1, 1])
    clash = wf.enqueue()
    with app.workflow("fine") as wf:
        wf.map(keyed.using(key=None), [1, 1])
    fine = wf.enqueue()
    drain(app)

    with pytest.raises(JobFailed, match=r"because another job has its key '1'"):
        clash.result()
    assert fine.result() == [2, 2]


def test_a_declared_workflow_is_known_for_one_before_it_has_begun_and_when_it_could_not(
    app: Mainspring, clock: SettableClock
) -> None:
    @app.schedule(every("1h"))
    @app.workflow(retry=ONCE)
    def nightly(wf: Workflow) -> None:
        raise RuntimeError("no such table")

    run = nightly.enqueue()
    assert [job.id for job in app.client.store.workflows()] == [run.id]
    drain(app)
    clock.advance("1h")
    drain(app)

    assert [job.state for job in app.client.store.workflows()] == [JobState.FAILED] * 2


def test_a_workflow_in_a_transaction_that_is_rolled_back_can_be_enqueued_again(app: Mainspring) -> None:
    make = app.task(double)
    with app.workflow("again") as wf:
        wf.add(make, 1)
    with connected(app.client.url) as connection:
        wf.enqueue(conn=connection)
        connection.rollback()
        run = wf.enqueue(conn=connection)
        connection.commit()
    drain(app)

    assert (run.result(), len(app.jobs())) == (2, 2)


def test_a_workflow_that_was_cancelled_in_its_second_life_says_so(app: Mainspring) -> None:
    @app.task(retry=ONCE)
    def fail() -> None:
        raise ValueError("broken")

    with app.workflow("twice") as wf:
        wf.add(fail)
    run = wf.enqueue()
    drain(app)
    run.replay()
    run.cancel("enough")

    with pytest.raises(JobFailed, match=r"cancelled: enough$"):
        run.result()


def test_a_key_made_of_a_result_must_be_told(app: Mainspring) -> None:
    keyed = app.task(name="keyed", key="{number}")(double)
    with app.workflow("clash") as wf:
        first = wf.add(keyed, 6)
        with pytest.raises(InvalidValue, match=r"the key of task 'keyed' is '{number}', and argument 'number' is the"):
            wf.add(keyed, first)
        wf.add(keyed.using(key=None), first)
    drain(app)


def test_jobs_that_are_cancelled_paused_and_resumed_with_their_workflow(app: Mainspring) -> None:
    make = app.task(double)

    def run() -> WorkflowHandle[Any]:
        with app.workflow("long") as wf:
            wf.add(make, wf.add(make, 1))
        return wf.enqueue()

    cancelled, paused = run(), run()
    assert cancelled.cancel("no longer needed") is JobState.CANCELLED
    assert states(cancelled) == {"cancelled": 2}
    assert cancelled.snapshot.reason == "no longer needed"
    assert paused.pause() is JobState.PAUSED
    assert states(paused) == {"paused": 2}
    drain(app)
    assert paused.resume() is JobState.BLOCKED
    drain(app)
    assert (paused.result(), cancelled.state) == (4, JobState.CANCELLED)


def test_a_running_job_adds_jobs_to_its_workflow_with_its_success(app: Mainspring) -> None:
    make, gather = app.task(double), app.task(total)
    fails: list[bool] = [True]

    @app.task(retry=Retry(max_attempts=2, base="1ms"))
    def spread(ctx: Context, numbers: list[int]) -> str:
        ctx.add(gather, [ctx.add(make, number) for number in numbers])
        ctx.map(make, numbers)
        if fails.pop() if fails else False:
            raise ValueError("not yet")
        return "spread"

    with app.workflow("growing") as wf:
        wf.add(spread, [1, 2])
    run = wf.enqueue()
    drain(app)
    assert states(run) == {"retrying": 1}
    _later(app)

    assert run.result() == "spread"
    assert states(run) == {"succeeded": 5}


def test_what_is_added_comes_with_the_transaction_that_the_job_succeeds_with_and_nothing_comes_later(
    app: Mainspring,
) -> None:
    make = app.task(double)
    fails = [True, False]

    @app.task(retry=Retry(max_attempts=2, base="1ms"))
    def write(ctx: Context) -> None:
        ctx.add(make, 1)
        with ctx.transaction(result="written"):
            ctx.add(make, 2)
            if fails.pop(0):
                raise ValueError("not yet")
        with pytest.raises(StoreError, match="the job has succeeded with its transaction block"):
            ctx.add(make, 3)

    with app.workflow("rows") as wf:
        wf.add(write)
    run = wf.enqueue()
    drain(app)
    assert states(run) == {"retrying": 1}
    _later(app)

    assert run.result() == "written"
    assert [job.result() for job in run.jobs()[1:]] == [2, 4]


def test_a_job_of_no_workflow_adds_plain_jobs(app: Mainspring) -> None:
    make = app.task(double)

    @app.task
    def spread(ctx: Context) -> None:
        ctx.add(make, ctx.add(make, 1))

    spread.enqueue()
    drain(app)

    assert sorted(job.result() for job in app.jobs(task="double")) == [2, 4]
    assert all(job.snapshot.workflow is None for job in app.jobs(task="double"))


def test_what_comes_with_a_job_can_undo_nothing(app: Mainspring) -> None:
    make = app.task(double)

    @app.task(retry=ONCE)
    def spread(ctx: Context) -> None:
        ctx.add(make, 1).on_failure(make, 2)

    job = spread.enqueue()
    drain(app)
    with pytest.raises(JobFailed, match=r"expected on_failure\(double, ...\) where a workflow is made as a whole"):
        job.result()


def test_a_job_comes_after_others_as_its_edges_say(app: Mainspring) -> None:
    @app.task(retry=ONCE)
    def fail() -> None:
        raise ValueError("broken")

    make = app.task(double)
    bad, good = fail.enqueue(), make.enqueue(1)
    cancelled = make.using(after=[bad, good]).enqueue(2)
    runs = make.using(after=[str(good.id), Parent(bad, if_failed="run")]).enqueue(3)
    waits = make.using(after=[Parent(bad.id, IfFailed.WAIT)]).enqueue(4)
    many = make.using(after=[good]).enqueue_many([((n,), {}) for n in range(3)])
    assert {job.state for job in (cancelled, runs, waits, *many)} == {JobState.BLOCKED}
    drain(app)

    assert (cancelled.state, waits.state) == (JobState.CANCELLED, JobState.BLOCKED)
    assert cancelled.snapshot.reason == f"its parent {bad.id} failed"
    assert [job.result() for job in (runs, *many)] == [6, 0, 2, 4]


def test_a_result_of_a_job_that_failed_is_nothing_where_its_child_runs_anyway(app: Mainspring) -> None:
    @app.task(retry=ONCE)
    def fail() -> int:
        raise ValueError("broken")

    @app.task
    def tell(number: int | None) -> str:
        return f"got {number}"

    with app.workflow("brave") as wf:
        bad = wf.add(fail)
        last = wf.add(tell.using(after=[Parent(bad, "run")]), bad)
    run = wf.enqueue()
    drain(app)

    assert app.job(last.id).result() == "got None"
    assert run.state is JobState.FAILED


def test_members_that_ran_are_kept_when_the_workflow_is_looked_at_again(app: Mainspring) -> None:
    make = app.task(double)
    with app.workflow("seen") as wf:
        wf.add(make, wf.add(make, 1))
    run = wf.enqueue()
    drain(app)

    members: list[Job] = run.members()
    assert [(job.task, job.workflow, len(job.beginnings.parents)) for job in members] == [
        ("double", run.id, 0),
        ("double", run.id, 1),
    ]
    assert [job.id for job in app.client.store.workflows()] == [run.id]


def refusals(app: Mainspring) -> dict[str, tuple[Callable[[], object], type[MainspringError], str]]:
    def odd() -> None: ...

    make = app.task(double)
    wf, other, used = app.workflow("wf"), app.workflow("other"), app.workflow("used")
    node, foreign = wf.add(make, 1), other.add(make, 1)
    done = used.add(make, 1)
    used.enqueue()
    return {
        "unknown parent": (lambda: make.using(after=[uuid4()]).enqueue(1), JobNotFound, "no job has the id"),
        "parents that are no list": (
            lambda: make.using(after=foreign).enqueue(1),  # type: ignore[arg-type]
            InvalidValue,
            "expected after to be a list of jobs, got: <job",
        ),
        "parent that is no job": (lambda: make.using(after=["x"]).enqueue(1), InvalidValue, "expected the id of a job"),
        "unknown policy": (
            lambda: make.using(after=[Parent(node, "ran")]).enqueue(1),  # type: ignore[arg-type]
            InvalidValue,
            "expected if_failed to be one of cancel, run, wait, got: 'ran', did you mean 'run'?",
        ),
        "map over a number": (lambda: wf.map(make, 5), InvalidValue, "expected a list, or a job of this workflow"),
        "map over a text": (lambda: wf.map(make, "abc"), InvalidValue, "expected a list, or a job of this workflow"),
        "item of the wrong type": (lambda: wf.map(make, [1, "b"]), InvalidPayload, "argument 'number': expected `int`"),
        "wrong argument": (lambda: wf.add(make, "a"), InvalidPayload, "argument 'number': expected `int`, got `str`"),
        "too many arguments": (lambda: wf.add(make, node, 2), InvalidPayload, "too many positional arguments"),
        "no argument": (lambda: wf.add(make), InvalidPayload, "missing a required argument: 'number'"),
        "job of another workflow": (
            lambda: wf.add(make, foreign),
            InvalidValue,
            "expected a job of this workflow as an",
        ),
        "a plain function": (lambda: wf.add(double, 1), InvalidValue, "expected a task, a function with @app.task"),  # type: ignore[arg-type]
        "unknown task": (lambda: wf.add("dubble", 1), TaskNotFound, "did you mean 'double'?"),
        "own transaction": (lambda: wf.add(make.using(conn=1), 1), InvalidValue, "expected no conn for one job of a"),
        "no jobs": (
            lambda: app.workflow("none").enqueue(),
            InvalidValue,
            "expected workflow 'none' to have jobs, got none",
        ),
        "enqueued twice": (used.enqueue, InvalidValue, "workflow 'used' was enqueued already"),
        "added too late": (lambda: used.add(make, 1), InvalidValue, "workflow 'used' was enqueued already"),
        "undone too late": (lambda: done.on_failure(make, 1), InvalidValue, "workflow 'used' was enqueued already"),
        "task of another app": (
            lambda: wf.add(Mainspring("sqlite:///other.db").task(double), 1),
            InvalidValue,
            "expected a task of the same app, got one of another: <task double>",
        ),
        "key of a map": (lambda: wf.map(make.using(key="a"), [1]), InvalidValue, "expected no key for a map"),
        "odd name": (lambda: app.workflow("a b"), InvalidValue, "expected task to be 1 to 128"),
        "unknown setting": (
            lambda: app.workflow("a", keys="b"),  # type: ignore[call-overload]
            InvalidValue,
            "no setting is named 'keys', did you mean 'key'?",
        ),
        "nothing to take the workflow": (
            lambda: app.workflow(odd),  # type: ignore[arg-type]
            InvalidValue,
            "such as def odd(wf, ...), got: odd()",
        ),
        "result that is no JSON": (
            lambda: wf.add(make, object()),
            InvalidPayload,
            "expected a value that JSON can carry",
        ),
    }


CASES = [
    "unknown parent", "parents that are no list", "parent that is no job", "unknown policy",
    "map over a number", "map over a text", "item of the wrong type", "wrong argument", "too many arguments",
    "no argument", "job of another workflow", "a plain function", "unknown task", "own transaction", "no jobs",
    "enqueued twice", "added too late", "undone too late", "task of another app", "key of a map", "odd name",
    "unknown setting", "nothing to take the workflow", "result that is no JSON",
]  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_is_wrong_is_refused_in_a_sentence_and_nothing_is_stored(app: Mainspring, case: str) -> None:
    call, error, sentence = refusals(app)[case]
    before = len(app.jobs())

    with pytest.raises(error) as caught:
        call()
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(app.jobs()) == before


def test_every_refusal_is_tried(app: Mainspring) -> None:
    assert list(refusals(app)) == CASES


async def _arun(app: Mainspring) -> object:
    from mainspring.testing import adrain

    make = app.task(double)
    with app.workflow("async") as wf:
        wf.add(make, wf.add(make, 1))
    run = await wf.aenqueue()
    await adrain(app)
    return await run.aresult(), await run.aprogress(), len(await run.ajobs())


def test_callers_on_a_loop_have_awaitable_twins(app: Mainspring) -> None:
    import asyncio

    assert asyncio.run(_arun(app)) == (4, {JobState.SUCCEEDED: 2}, 2)


def _later(app: Mainspring) -> None:
    clock = app.client.given_clock
    assert isinstance(clock, SettableClock)
    clock.advance(60)
    drain(app)
