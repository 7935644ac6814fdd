"""Context: what a handler says is kept, whatever it says and from whichever thread."""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

import pytest

from mainspring.errors import CancelRequested, InvalidValue, StoreError
from mainspring.model.journal import LogLine, Progress
from mainspring.model.outcome import Succeeded
from mainspring.store import Store
from mainspring.worker.context import Context, JobLog
from mainspring.worker.secrecy import Secrecy
from tests.worker.hosts import held_job

T = TypeVar("T")


class ListAttempt:
    """An attempt whose entries are in a list."""

    def __init__(self) -> None:
        self.lines: list[LogLine] = []
        self.reached: list[Progress] = []
        self.why: BaseException | None = None

    def stop(self) -> BaseException | None:
        return self.why

    def record(self, entry: LogLine | Progress) -> None:
        if isinstance(entry, LogLine):
            self.lines.append(entry)
        else:
            self.reached.append(entry)

    def transaction(self, success: Callable[[], Succeeded]) -> AbstractContextManager[None]:
        return nullcontext()

    def step_transaction(self, name: str, result: str) -> AbstractContextManager[None]:
        return nullcontext()

    def with_store(self, work: Callable[[Store], T]) -> T:
        raise NotImplementedError


@pytest.fixture
def attempt() -> ListAttempt:
    return ListAttempt()


@pytest.fixture
def ctx(attempt: ListAttempt) -> Context:
    return Context(held_job(print).job, attempt, None)


def test_checks_that_a_handler_ignores_cost_no_memory(ctx: Context, attempt: ListAttempt) -> None:
    attempt.why = CancelRequested("cancelled")
    lengths = set()
    for _ in range(3):
        try:
            ctx.check()
        except CancelRequested as stop:
            lengths.add(len(traceback.extract_tb(stop.__traceback__)))

    assert len(lengths) == 1


class Shy:
    def __str__(self) -> str:
        raise ValueError("not telling")

    __repr__ = __str__


@pytest.mark.parametrize(
    ("message", "args", "kept"),
    [
        ("%(name)s", ({"name": "x"},), "x"),
        ("%s and %s", (1, 2), "1 and 2"),
        ("100%", (), "100%"),
        ("100% sure of %s", ("x",), "100% sure of %s"),
        ("%d", ("x",), "%d"),
        (404, (), "404"),
        (Shy(), (), "a value of type Shy"),
    ],
)
def test_a_line_is_formatted_as_logging_would_and_never_fails_the_job(
    ctx: Context, attempt: ListAttempt, message: object, args: tuple[object, ...], kept: str
) -> None:
    ctx.log.info(message, *args)

    assert [line.message for line in attempt.lines] == [kept]


def test_an_exception_that_is_logged_is_kept_with_its_traceback(ctx: Context, attempt: ListAttempt) -> None:
    def divide() -> float:
        return 1 / 0

    try:
        divide()
    except ZeroDivisionError as error:
        ctx.log.exception("it broke")
        ctx.log.warning("it broke", exc_info=error)
        ctx.log.warning("it broke", exc_info=sys.exc_info())
    ctx.log.warning("nothing broke", exc_info=True)

    *broke, nothing = [line.message for line in attempt.lines]
    for message in broke:
        assert message.startswith("it broke\nTraceback")
        assert "in divide" in message
        assert message.endswith("ZeroDivisionError: division by zero")
    assert nothing == "nothing broke"


def test_an_endless_traceback_is_cut(ctx: Context, attempt: ListAttempt) -> None:
    ctx.log.error("it broke", exc_info=ValueError("x" * 1_000_000))

    assert len(attempt.lines[0].message) < 11_000


def test_what_a_caller_adds_to_a_line_reaches_the_log(ctx: Context, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        ctx.log.info("copied", extra={"bytes_copied": 5})
    assert [vars(record)["bytes_copied"] for record in caplog.records] == [5]


def test_what_a_caller_adds_to_a_line_tells_no_secret(attempt: ListAttempt, caplog: pytest.LogCaptureFixture) -> None:
    secrecy = Secrecy(values=["hunter2-topsecret"])
    log = JobLog(held_job(print).job, attempt, secrecy)
    with caplog.at_level(logging.INFO):
        log.info("copied", extra={"token": "it is hunter2-topsecret"})
    assert [vars(record)["token"] for record in caplog.records] == ["it is ***"]


def test_the_traceback_goes_to_the_log_once(ctx: Context, caplog: pytest.LogCaptureFixture) -> None:
    ctx.log.error("it broke", exc_info=ValueError("no"))

    (record,) = caplog.records
    assert record.message == "it broke"
    assert record.exc_info is not None


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """Threads that take turns as often as can be."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty_threads")
def test_lines_that_are_said_at_the_same_time_have_numbers_of_their_own(ctx: Context, attempt: ListAttempt) -> None:
    """Of two that shared a number, one would not be kept."""

    def talk() -> None:
        for _ in range(1_000):
            ctx.log.keep(logging.INFO, "x")

    threads = [threading.Thread(target=talk) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(line.number for line in attempt.lines) == list(range(1, 8_001))


def test_the_number_of_lines_is_bounded(ctx: Context, attempt: ListAttempt) -> None:
    for _ in range(11_000):
        ctx.log("x")

    assert len(attempt.lines) == 10_000
    assert attempt.lines[-1].message == "this attempt has logged too much; what follows is not kept"


def test_a_job_has_one_transaction_block(ctx: Context) -> None:
    with ctx.transaction():
        pass

    with pytest.raises(StoreError, match="has succeeded with its first transaction block"), ctx.transaction():
        pass


def test_a_block_that_failed_may_be_tried_again(ctx: Context) -> None:
    with pytest.raises(ZeroDivisionError), ctx.transaction():
        _ = 1 / 0

    with ctx.transaction():
        pass


@pytest.mark.parametrize(("done", "total"), [("a", 2), (1, "b"), (-1, 2), (1, -2), (None, 1)])
def test_progress_is_in_numbers(ctx: Context, done: float, total: float) -> None:
    with pytest.raises(InvalidValue, match="expected progress to be numbers of at least 0"):
        ctx.progress(done, total)


def test_a_note_is_bounded(ctx: Context, attempt: ListAttempt) -> None:
    ctx.progress(1, 2, "n" * 1_000_000)

    (reached,) = attempt.reached
    assert reached.note is not None
    assert len(reached.note) < 2_000
