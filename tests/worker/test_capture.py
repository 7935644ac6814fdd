"""Capture: what a handler leaves to Python's logging is kept with its job, once, and with no other job."""

from __future__ import annotations

import asyncio
import contextvars
import importlib
import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mainspring import Context, Mainspring
from mainspring.errors import InvalidValue
from mainspring.job_handle import JobHandle
from mainspring.worker.capture import Capture, capture_level
from tests.support.waiting import until
from tests.worker import process_tasks
from tests.worker.children import LONG, in_process

shop = logging.getLogger("shop.mail")


@pytest.fixture(autouse=True)
def from_debug_on(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)


@contextmanager
def silence() -> Iterator[None]:
    """Be a process that has not set up logging, as pytest has."""
    before, logging.root.handlers = logging.root.handlers, []
    try:
        yield
    finally:
        logging.root.handlers = before


def said(job: JobHandle[Any]) -> list[tuple[str, str, str | None]]:
    return [(line.level, line.message, line.logger) for line in job.logs()]


def run(app: Mainspring, task: Any, *args: object, **settings: Any) -> JobHandle[Any]:
    with app.worker(**settings):
        job: JobHandle[Any] = task.enqueue(*args)
        job.result(timeout=LONG)
    return job


def test_records_of_a_thread_are_kept_from_info_on(app: Mainspring) -> None:
    @app.task
    def mail() -> None:
        shop.debug("connecting")
        shop.info("sent %d", 7)
        shop.error("bounced")

    assert said(run(app, mail)) == [("info", "sent 7", "shop.mail"), ("error", "bounced", "shop.mail")]


def test_records_of_a_coroutine_and_of_what_it_awaits_are_kept(app: Mainspring) -> None:
    async def inner() -> None:
        shop.info("in a task")

    @app.task
    async def mail() -> None:
        shop.info("in the coroutine")
        await asyncio.gather(inner(), asyncio.to_thread(shop.info, "in a thread"))

    assert sorted(message for _, message, _ in said(run(app, mail))) == ["in a task", "in a thread", "in the coroutine"]


def test_records_of_a_child_process_are_kept(app: Mainspring) -> None:
    job = run(app, in_process(app, process_tasks.mutter), "x")

    assert said(job) == [("info", "said x", "shop.mail"), ("warning", "warned of x", "shop.mail")]


def test_records_of_a_child_process_are_logged_by_the_worker_as_its_own_are(
    app: Mainspring, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    run(app, in_process(app, process_tasks.mutter), "x")

    heard = [(record.name, record.levelname, record.getMessage()) for record in caplog.records]
    assert heard.count(("shop.mail", "WARNING", "warned of x")) == 1
    assert heard.count(("shop.mail", "INFO", "said x")) == 1
    assert "warned of x" not in capfd.readouterr().err


def test_a_child_whose_code_sets_up_logging_logs_by_itself_and_is_kept(
    app: Mainspring,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "talkative.py").write_text(
        "import logging, os\n"
        "def handler(): logging.getLogger('shop').warning('hello')\n"
        f"if os.getpid() != {os.getpid()}: logging.basicConfig(format='child: %(message)s')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    job = run(app, in_process(app, importlib.import_module("talkative").handler))

    assert said(job) == [("warning", "hello", "shop")]
    assert capfd.readouterr().err.splitlines() == ["child: hello"]
    assert "hello" not in caplog.messages
    del sys.modules["talkative"]


def test_what_a_job_says_by_its_context_is_kept_once_and_beside_the_rest(app: Mainspring) -> None:
    @app.task
    def mail(ctx: Context) -> None:
        ctx.log("by the context")
        shop.error("by logging")

    expected = [("info", "by the context", None), ("error", "by logging", "shop.mail")]
    assert said(run(app, mail)) == expected
    expected = [("info", "by the context", None), ("error", "by logging", "shop")]
    assert said(run(app, in_process(app, process_tasks.mutter_and_say))) == expected


def test_what_mainspring_says_about_itself_is_not_kept(app: Mainspring) -> None:
    @app.task
    def mail() -> None:
        logging.getLogger("mainspring").error("ours")
        logging.getLogger("mainspring.worker").error("ours")
        logging.getLogger("mainspringer").error("theirs")

    assert said(run(app, mail)) == [("error", "theirs", "mainspringer")]


def test_jobs_that_run_side_by_side_keep_their_own(app: Mainspring) -> None:
    gate = threading.Barrier(4)

    @app.task
    def mail(number: int) -> None:
        gate.wait()
        shop.info("to %d", number)

    @app.task
    async def amail(number: int) -> None:
        await asyncio.sleep(0)
        shop.info("to %d", number)

    with app.worker(concurrency=4):
        jobs = {number: task.enqueue(number) for task in (mail, amail) for number in range(4)}
        many = [amail.enqueue(number) for number in range(50)]
        for job in [*jobs.values(), *many]:
            job.result(timeout=LONG)

    assert [said(job) for job in many] == [[("info", f"to {number}", "shop.mail")] for number in range(50)]
    assert {number: said(job) for number, job in jobs.items()} == {
        number: [("info", f"to {number}", "shop.mail")] for number in range(4)
    }


def test_what_is_said_when_the_attempt_is_over_is_nobodys(app: Mainspring) -> None:
    next_begun, said_it = threading.Event(), threading.Event()

    @app.task
    def first() -> None:
        def speak() -> None:
            next_begun.wait()
            shop.error("too late")
            said_it.set()

        threading.Thread(target=contextvars.copy_context().run, args=(speak,)).start()

    @app.task
    def second() -> None:
        next_begun.set()
        said_it.wait()

    with app.worker(concurrency=1):
        jobs = [first.enqueue(), second.enqueue()]
        for job in jobs:
            job.result(timeout=LONG)

    assert [said(job) for job in jobs] == [[], []]


def test_what_is_said_in_a_child_process_when_the_attempt_is_over_is_nobodys(app: Mainspring) -> None:
    tasks = [in_process(app, process_tasks.mutter_when_over), in_process(app, process_tasks.wait_for_the_late)]

    with app.worker(concurrency=1):
        jobs = [task.enqueue() for task in tasks]
        for job in jobs:
            job.result(timeout=LONG)

    assert [said(job) for job in jobs] == [[], []]


def test_a_thread_that_does_not_copy_the_context_is_not_heard(app: Mainspring) -> None:
    @app.task
    def mail() -> None:
        thread = threading.Thread(target=shop.error, args=("alone",))
        thread.start()
        thread.join()

    assert said(run(app, mail)) == []


def test_the_threads_of_a_job_number_their_lines_together(app: Mainspring) -> None:
    @app.task
    def mail() -> None:
        gate = threading.Barrier(8)

        def speak(number: int) -> None:
            gate.wait()
            shop.info("from %d", number)

        contexts = [contextvars.copy_context() for _ in range(8)]
        threads = [threading.Thread(target=own.run, args=(speak, number)) for number, own in enumerate(contexts)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert sorted(message for _, message, _ in said(run(app, mail))) == [f"from {number}" for number in range(8)]


def test_logging_and_the_context_share_what_an_attempt_may_say(app: Mainspring) -> None:
    @app.task
    def mail(ctx: Context) -> None:
        for _ in range(90):
            ctx.log("x" * 10_000)
        for _ in range(20):
            shop.info("y" * 10_000)

    lines = said(run(app, mail))
    assert len(lines) == 100
    assert lines[-1] == ("warning", "this attempt has logged too much; what follows is not kept", None)


def test_a_record_that_can_not_be_formatted_does_not_fail_the_job(
    app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.task
    def mail() -> None:
        shop.info("100% sure of %s", "x")
        shop.info("%(name)s", {"name": "Ada"})
        try:
            _ = 1 / 0
        except ZeroDivisionError:
            shop.exception("broken")

    monkeypatch.setattr(logging, "raiseExceptions", False)
    with silence():
        job = run(app, mail)
    first, second, third = [message for _, message, _ in said(job)]
    assert (first, second) == ("100% sure of %s", "Ada")
    assert third.startswith("broken\nTraceback")
    assert third.endswith("ZeroDivisionError: division by zero")


def test_records_within_a_transaction_block_are_kept_with_it_or_not_at_all(app: Mainspring) -> None:
    @app.task
    def mail(ctx: Context, fail: bool) -> None:
        with ctx.transaction():
            shop.info("within")
            if fail:
                raise ValueError("no")

    with app.worker():
        good, bad = mail.enqueue(False), mail.enqueue(True)
        good.result(timeout=LONG)
        until(lambda: bad.attempts() and bad.attempts()[0].outcome == "failed")

    assert said(good) == [("info", "within", "shop.mail")]
    assert said(bad) == []


@pytest.mark.parametrize(("wanted", "kept"), [("debug", 3), ("warning", 1), ("off", 0)])
def test_the_level_is_the_workers_choice(app: Mainspring, wanted: str, kept: int) -> None:
    @app.task
    def mail() -> None:
        shop.debug("1")
        shop.info("2")
        shop.warning("3")

    assert len(said(run(app, mail, capture_logs=wanted))) == kept


def test_a_level_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidValue, match=r"one of debug, info, warning, error, critical, off, got: 'warn'.*warning"):
        capture_level("warn")


def test_two_workers_in_one_process_keep_each_its_own(app: Mainspring, sqlite_url: str) -> None:
    other = Mainspring(f"{sqlite_url}-other")

    @app.task
    @other.task
    def mail() -> None:
        shop.info("sent")

    with app.worker(), other.worker():
        jobs = [one.enqueue("mail") for one in (app, other)]
        for job in jobs:
            job.result(timeout=LONG)
    other.close()

    assert [said(job) for job in jobs] == [[("info", "sent", "shop.mail")]] * 2


def test_a_worker_that_has_stopped_listens_no_more(app: Mainspring) -> None:
    with app.worker():
        assert any(isinstance(handler, Capture) for handler in logging.root.handlers)

    assert not any(isinstance(handler, Capture) for handler in logging.root.handlers)


def test_what_nobody_else_hears_goes_to_stderr_as_it_would_without_us(
    app: Mainspring, capfd: pytest.CaptureFixture[str]
) -> None:
    @app.task
    def mail() -> None:
        shop.info("kept")
        shop.warning("kept and seen")

    with silence(), app.worker(), app.worker():
        job = app.enqueue("mail")
        job.result(timeout=LONG)
        logging.getLogger("elsewhere").warning("seen")

    assert capfd.readouterr().err.splitlines() == ["kept and seen", "seen"]
    assert [message for _, message, _ in said(job)] == ["kept", "kept and seen"]
