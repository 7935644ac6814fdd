"""Handlers in processes of their own: they can be killed, and can't take the worker with them when they die."""

from __future__ import annotations

import functools
import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from mainspring import JobState, Mainspring, Retry
from mainspring.errors import CancelRequested
from mainspring.job_handle import JobHandle
from mainspring.model.lifecycle import settle
from mainspring.model.outcome import Lost, Outcome, Returned
from mainspring.model.task import Task
from mainspring.worker.executors import process, processes
from mainspring.worker.executors.child import Stopper
from mainspring.worker.executors.messages import Begin, Begun, Frames, Stop, frame
from mainspring.worker.executors.process import Process
from mainspring.worker.executors.references import Reference, importable, reference_to
from mainspring.worker.held import Held
from mainspring.worker.worker import Worker
from tests.support.databases import execute
from tests.support.factories import opened_session
from tests.support.waiting import until
from tests.worker import process_tasks
from tests.worker.children import LONG, ONCE, endless_to_import, failure, in_process, is_dead, read, state_of
from tests.worker.endings import ended, outcomes

ROOT = Path(__file__).parents[2]
ON_BOTH = pytest.mark.parametrize("url", ["sqlite", "postgres"], indirect=True)


@pytest.fixture
def url(request: pytest.FixtureRequest) -> str:
    """A SQLite file, unless the test runs ON_BOTH: most of what is tested here is the same on any database."""
    found: str = request.getfixturevalue(f"{getattr(request, 'param', 'sqlite')}_url")
    return found


# --- an attempt in another process is like any other -------------------------------------------------------------


@ON_BOTH
def test_the_result_comes_back(app: Mainspring) -> None:
    later = in_process(app, process_tasks.later)

    with app.worker():
        job = later.enqueue(date(2026, 1, 1), by=timedelta(days=2))
        assert job.result(timeout=LONG) == date(2026, 1, 3)

    assert outcomes(job) == ["succeeded"]


def test_it_is_another_process_that_serves_one_job_after_the_other_and_ends_with_the_worker(app: Mainspring) -> None:
    pid = in_process(app, process_tasks.pid)

    with app.worker():
        first = pid.enqueue().result(timeout=LONG)
        second = pid.enqueue().result(timeout=LONG)
        assert first == second != os.getpid()

    assert state_of(first) == ""


def test_jobs_run_side_by_side(app: Mainspring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    meet = in_process(app, process_tasks.meet)
    (tmp_path / "here").mkdir()

    with app.worker():
        jobs = [meet.enqueue(str(tmp_path / "here"), me, 1) for me in range(2)]
        assert len({job.result(timeout=LONG) for job in jobs}) == 2


def test_an_app_there_that_names_no_database_has_the_workers(app: Mainspring, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MAINSPRING_URL", raising=False)
    address = in_process(app, process_tasks.address)

    with app.worker():
        assert address.enqueue().result(timeout=LONG) == app.client.url


def test_arguments_and_results_may_be_large(app: Mainspring) -> None:
    large = in_process(app, process_tasks.large)
    text = "ä" * 60_000

    with app.worker():
        assert large.enqueue(text).result(timeout=LONG) == text * 2


def test_the_handler_has_its_context(app: Mainspring, caplog: pytest.LogCaptureFixture) -> None:
    talk = in_process(app, process_tasks.talk, timeout="1h")
    caplog.set_level(logging.INFO, "mainspring.job")

    with app.worker():
        job = talk.enqueue()
        assert job.result(timeout=LONG) == [str(job.id), 1, 1]

    assert [(line.level, line.message) for line in job.logs()] == [("info", "began with 7"), ("warning", "half way")]
    reached = job.refresh().reached
    assert reached is not None
    assert (reached.done, reached.total, reached.note) == (1, 2, "half way")
    assert ("mainspring.job.talk", logging.WARNING, "half way") in caplog.record_tuples


def test_an_exception_is_a_failure_that_is_kept(app: Mainspring) -> None:
    boom = in_process(app, process_tasks.boom)
    here = app.task(retry=ONCE, name="here")(process_tasks.boom)

    with app.worker():
        found = failure(boom.enqueue())
        same = failure(here.enqueue())

    assert (found.type, found.message) == ("ValueError", "boom 42")
    assert found.traceback == same.traceback
    assert found.fingerprint is not None
    assert 'process_tasks.py", line' in str(found.traceback)


def test_the_retry_policy_knows_the_exceptions_of_the_other_process(app: Mainspring) -> None:
    policy = Retry(max_attempts=2, base=0, on=(process_tasks.Unlucky,), never=(process_tasks.Hopeless,))
    out_of_luck = in_process(app, process_tasks.out_of_luck, retry=policy)

    with app.worker():
        hoping, hopeless = out_of_luck.enqueue(hope=True), out_of_luck.enqueue(hope=False)
        failure(hoping)
        failure(hopeless)

    assert outcomes(hoping) == ["failed", "failed"]
    assert outcomes(hopeless) == ["failed"]


def test_an_exit_is_a_failure_and_no_loss(app: Mainspring) -> None:
    leave = in_process(app, process_tasks.leave)

    with app.worker():
        job = leave.enqueue()
        assert failure(job).type == "SystemExit"

    assert outcomes(job) == ["failed"]


def test_a_handler_can_ask_to_be_run_later(app: Mainspring) -> None:
    snooze = in_process(app, process_tasks.snooze)

    with app.worker():
        job = snooze.enqueue()
        assert job.result(timeout=LONG) == 1

    assert outcomes(job) == ["snoozed", "succeeded"]


# --- what a handler writes together with its success -------------------------------------------------------------


@ON_BOTH
def test_a_transaction_keeps_rows_and_success_together(app: Mainspring) -> None:
    url = app.client.url
    execute(url, "CREATE TABLE letters (text TEXT)")
    write_letter = in_process(app, process_tasks.write_letter)
    spoil_letter = in_process(app, process_tasks.spoil_letter)

    with app.worker():
        written, spoilt = write_letter.enqueue("dear"), spoil_letter.enqueue()
        assert written.result(timeout=LONG) == "dear"
        assert failure(spoilt).message == "out of ink"

    assert outcomes(written) == ["succeeded"]
    assert execute(url, "SELECT text FROM letters") == [("dear",)]


@ON_BOTH
def test_what_is_logged_before_and_within_a_transaction_is_kept(
    app: Mainspring, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    execute(app.client.url, "CREATE TABLE letters (text TEXT)")
    caplog.set_level(logging.INFO, "mainspring.job")
    flush = Worker.flush
    flushes: list[None] = []
    monkeypatch.setattr(Worker, "flush", lambda worker: flushes.append(flush(worker)))
    talkative, silent = in_process(app, process_tasks.write_about), in_process(app, process_tasks.write_letter)

    with app.worker():
        job = talkative.enqueue("dear")
        job.result(timeout=LONG)
        assert len(flushes) == 1  # or what was said before would have raced with the block for the database
        silent.enqueue("dear").result(timeout=LONG)
        assert len(flushes) == 1

    assert [line.message for line in job.logs()] == ["about to write", "writing"]
    assert [message for name, _, message in caplog.record_tuples if name == "mainspring.job.write_about"] == [
        "about to write",
        "writing",
    ]


def test_an_attempt_that_waits_for_its_words_to_be_written_keeps_no_other_waiting(
    app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    execute(app.client.url, "CREATE TABLE letters (text TEXT)")
    flushing, go_on = threading.Event(), threading.Event()

    def flush(worker: Worker) -> None:
        flushing.set()
        go_on.wait()

    monkeypatch.setattr(Worker, "flush", flush)
    write_about, pid = in_process(app, process_tasks.write_about), in_process(app, process_tasks.pid)

    with app.worker():
        job = write_about.enqueue("dear")
        flushing.wait()
        assert pid.enqueue().result(timeout=LONG)
        assert job.state is JobState.RUNNING
        go_on.set()
        job.result(timeout=LONG)


# --- stopping an attempt -----------------------------------------------------------------------------------------


def test_a_handler_that_never_returns_times_out(app: Mainspring, tmp_path: Path) -> None:
    spin = in_process(app, process_tasks.spin, timeout="0.2s")

    with app.worker():
        job = spin.enqueue(str(tmp_path))
        found = failure(job)
        until(lambda: is_dead(int(read(tmp_path / "started"))))

    assert outcomes(job) == ["timed_out"]
    assert found.message == "the attempt took longer than its timeout of 0.2 s"
    assert 'process_tasks.py", line' in str(found.traceback)
    assert read(tmp_path / "stopped") == f"TimeExpired: {found.message}"


@pytest.mark.slow
def test_a_handler_that_will_not_end_is_killed_with_all_that_it_started(
    app: Mainspring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "GRACE", 0.2)
    deaf = in_process(app, process_tasks.deaf, timeout="0.2s")
    pid = in_process(app, process_tasks.pid)

    with app.worker():
        job = deaf.enqueue(str(tmp_path))
        found = failure(job)
        until(lambda: all(is_dead(int(each)) for each in read(tmp_path / "started").split()))
        assert pid.enqueue().result(timeout=LONG)

    assert outcomes(job) == ["timed_out"]
    assert found.message == "the attempt took longer than its timeout of 0.2 s"


def test_a_running_job_is_cancelled(app: Mainspring, tmp_path: Path) -> None:
    spin = in_process(app, process_tasks.spin)

    with app.worker():
        job = spin.enqueue(str(tmp_path))
        read(tmp_path / "started")
        assert job.cancel("enough") is JobState.RUNNING
        assert ended(job) is JobState.CANCELLED
        assert read(tmp_path / "left") == "in good order"

    assert outcomes(job) == ["cancelled"]
    assert job.snapshot.reason == "enough"
    assert read(tmp_path / "stopped") == "CancelRequested: cancelled"


def test_a_handler_can_be_cancelled_though_the_one_before_it_was_deaf(app: Mainspring, tmp_path: Path) -> None:
    be_deaf, spin = in_process(app, process_tasks.be_deaf_from_now_on), in_process(app, process_tasks.spin)

    with app.worker():
        child = be_deaf.enqueue().result(timeout=LONG)
        job = spin.enqueue(str(tmp_path))
        assert int(read(tmp_path / "started")) == child
        job.cancel()
        assert ended(job) is JobState.CANCELLED

    assert read(tmp_path / "stopped") == "CancelRequested: cancelled"


@pytest.mark.parametrize("handler", [process_tasks.check, process_tasks.chat])
def test_a_handler_that_checks_or_speaks_is_cancelled(
    app: Mainspring, handler: Callable[..., None], tmp_path: Path
) -> None:
    running = in_process(app, handler)

    with app.worker():
        job = running.enqueue(str(tmp_path))
        read(tmp_path / "started")
        job.cancel()
        assert ended(job) is JobState.CANCELLED


def test_a_job_whose_handler_is_still_being_imported_is_cancelled(
    app: Mainspring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = in_process(app, endless_to_import(tmp_path, monkeypatch), timeout="0.01s")

    with app.worker():
        job = slow.enqueue()
        read(tmp_path / "importing")
        job.cancel()
        assert ended(job) is JobState.CANCELLED

    assert outcomes(job) == ["cancelled"]


def test_a_signal_that_is_not_the_workers_ends_nothing(app: Mainspring) -> None:
    be_told_to_end = in_process(app, process_tasks.be_told_to_end)

    with app.worker():
        assert be_told_to_end.enqueue().result(timeout=LONG) == "went on"


@pytest.fixture
def stopper(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stopper]:
    """The way of a stop into the main thread, with this process in the place of the child's process group."""
    monkeypatch.setattr(os, "killpg", lambda group, number: signal.raise_signal(number))
    before = signal.getsignal(signal.SIGTERM)
    yield Stopper()
    signal.signal(signal.SIGTERM, before)


def test_a_stop_that_comes_before_the_attempt_has_begun_ends_it_then(stopper: Stopper) -> None:
    stopper.expect()
    stopper.send(CancelRequested("early"))

    with pytest.raises(CancelRequested, match="early"):
        stopper.open()


def test_a_stop_that_comes_amid_a_message_waits_for_its_end(stopper: Stopper) -> None:
    stopper.expect()
    stopper.open()
    sent = []

    def send() -> None:
        with stopper.held_off():
            stopper.send(CancelRequested("now"))
            sent.append("all of it")

    with pytest.raises(CancelRequested):
        send()

    assert sent == ["all of it"]


def test_a_stop_that_comes_after_the_attempt_is_nobodys(stopper: Stopper) -> None:
    stopper.expect()
    stopper.open()
    stopper.shut()
    stopper.send(CancelRequested("late"))

    stopper.expect()
    stopper.open()
    assert stopper.stop is None


def test_a_paused_job_stands_still_and_goes_on_where_it_was(app: Mainspring, tmp_path: Path) -> None:
    count = in_process(app, process_tasks.count)

    with app.worker():
        job = count.enqueue(str(tmp_path))
        child = int(read(tmp_path / "counted").split()[0])
        job.pause()
        until(lambda: state_of(child).startswith("T"))
        before = read(tmp_path / "counted")
        job.resume()
        until(lambda: read(tmp_path / "counted") != before)
        (tmp_path / "enough").touch()
        assert job.result(timeout=LONG) == child

    assert outcomes(job) == ["succeeded"]


def test_a_paused_job_can_be_cancelled(app: Mainspring, tmp_path: Path) -> None:
    spin = in_process(app, process_tasks.spin)

    with app.worker():
        job = spin.enqueue(str(tmp_path))
        child = int(read(tmp_path / "started"))
        job.pause()
        until(lambda: state_of(child).startswith("T"))
        job.cancel()
        assert ended(job) is JobState.CANCELLED

    assert read(tmp_path / "stopped") == "CancelRequested: cancelled"
    assert state_of(child) == ""


def test_paused_jobs_keep_neither_other_jobs_waiting_nor_the_worker_from_stopping(
    app: Mainspring, tmp_path: Path
) -> None:
    spin, pid = in_process(app, process_tasks.spin), in_process(app, process_tasks.pid)

    with app.worker(concurrency=1):
        job = spin.enqueue(str(tmp_path))
        child = int(read(tmp_path / "started"))
        job.pause()
        until(lambda: state_of(child).startswith("T"))
        assert pid.enqueue().result(timeout=LONG) != child

    assert job.state is JobState.PAUSED
    assert state_of(child) == ""


def test_a_worker_that_stops_gives_back_what_has_not_ended_but_not_before_it_is_dead(
    app: Mainspring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaf = in_process(app, process_tasks.deaf)
    ended = Worker.ended
    seen: list[tuple[Outcome | None, list[bool]]] = []

    def look(worker: Worker, held: Held, outcome: Outcome | None) -> None:
        seen.append((outcome, [is_dead(int(each)) for each in read(tmp_path / "started").split()]))
        ended(worker, held, outcome)

    monkeypatch.setattr(Worker, "ended", look)
    with app.worker(grace=0.1):
        job = deaf.enqueue(str(tmp_path))
        read(tmp_path / "started")

    assert seen == [(Returned(), [True, True])]
    assert (job.state, outcomes(job)) == (JobState.READY, ["returned"])


def test_an_attempt_that_nobody_waits_for_any_more_is_killed(app: Mainspring, tmp_path: Path) -> None:
    deaf = in_process(app, process_tasks.deaf)
    pid = in_process(app, process_tasks.pid)

    with app.worker(concurrency=1) as node:
        job = deaf.enqueue(str(tmp_path))
        running = [int(each) for each in read(tmp_path / "started").split()]
        assert node.worker is not None
        (held,) = node.worker.session.holding.all()
        node.worker._abandon(held)
        assert ended(job) is JobState.FAILED
        assert pid.enqueue().result(timeout=LONG) not in running
        until(lambda: all(is_dead(each) for each in running))

    assert outcomes(job) == ["timed_out"]


def test_an_attempt_ends_when_the_lease_is_lost(app: Mainspring, tmp_path: Path) -> None:
    spin = in_process(app, process_tasks.spin)

    with app.worker() as node:
        job = spin.enqueue(str(tmp_path))
        child = int(read(tmp_path / "started"))
        assert node.worker is not None
        session = node.worker.session
        session.lose("of a test", session.until)
        until(lambda: is_dead(child))

    assert job.state is JobState.RUNNING
    assert outcomes(job) == [None]


# --- processes that die ------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("handler", "end"),
    [
        (process_tasks.exit_hard, "exited with code 3"),
        (process_tasks.kill_itself, "was killed by SIGKILL"),
        (process_tasks.crash, "was killed by SIGSEGV"),
        (process_tasks.fork_and_exit, "exited with code 3"),
    ],
)
def test_a_process_that_dies_is_a_loss_and_the_third_one_fails_the_job(
    app: Mainspring, handler: Callable[..., None], end: str
) -> None:
    dying, pid = in_process(app, handler), in_process(app, process_tasks.pid)

    with app.worker():
        job = dying.enqueue()
        found = failure(job)
        assert pid.enqueue().result(timeout=LONG)

    assert found.type == "WorkerLost"
    assert found.message.startswith(f"its process {end} after ")
    assert outcomes(job) == ["lost", "lost", "lost"]
    assert job.snapshot.losses == 3


def test_what_a_process_that_died_has_left_behind_is_ended(app: Mainspring, tmp_path: Path) -> None:
    start_and_exit = in_process(app, process_tasks.start_and_exit)

    with app.worker():
        job = start_and_exit.enqueue(str(tmp_path))
        left_behind = int(read(tmp_path / "started"))
        assert failure(job).message.startswith("its process exited with code 3")
        until(lambda: is_dead(left_behind))


GROW_AND_DIE = """
import sys
from mainspring import Mainspring
from tests.worker import process_tasks
from tests.worker.test_processes import failure, in_process

app = Mainspring(sys.argv[1])
grow_and_die = in_process(app, process_tasks.grow_and_die)
with app.worker():
    print(failure(grow_and_die.enqueue()).message)
app.close()
"""


@pytest.mark.slow
def test_it_is_told_how_much_memory_a_process_that_died_had_used(url: str) -> None:
    # By a program whose parent is small: what that has used counts as used by its child, until the child uses more.
    command = ["sh", "-c", '"$@"; exit', "sh", sys.executable, "-W", "ignore", "-c", GROW_AND_DIE, url]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True)

    told = re.search(r"its process was killed by SIGKILL after .* s, having used up to (\d+) MB of memory", done.stdout)
    assert told is not None, done
    assert 400 <= int(told[1]) < 800


def test_a_process_that_dies_between_two_jobs_is_replaced(app: Mainspring) -> None:
    pid = in_process(app, process_tasks.pid)

    with app.worker():
        first = pid.enqueue().result(timeout=LONG)
        os.kill(first, signal.SIGKILL)
        until(lambda: state_of(first) == "")
        job = pid.enqueue()
        assert job.result(timeout=LONG) != first

    assert outcomes(job) == ["succeeded"]


def test_a_job_that_does_not_reach_its_process_goes_to_another(
    app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = in_process(app, process_tasks.pid)
    begin = Process.begin
    killed: list[int] = []

    def kill_first(process: Process, order: Begin) -> bool:
        if not killed:
            killed.append(process._popen.pid)
            process.kill()
            until(lambda: is_dead(killed[0]))
        return begin(process, order)

    monkeypatch.setattr(Process, "begin", kill_first)
    with app.worker():
        job = pid.enqueue()
        assert job.result(timeout=LONG) not in killed

    assert "lost" not in outcomes(job)


def test_messages_come_out_of_a_stream_however_it_was_cut() -> None:
    sent: list[Stop | Begun] = [Stop("CancelRequested", "ä" * 300), Begun()]
    stream = b"".join(map(frame, sent))

    by_byte = Frames()
    assert [message for byte in stream for message in by_byte.feed(bytes([byte]))] == Frames().feed(stream)
    assert Frames().feed(stream) == [msgspec.json.encode(message) for message in sent]


def test_a_process_that_can_not_be_started_now_is_started_later(
    app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = process._start
    troubles = [BlockingIOError("too many processes")]

    def start_at_last(line: int, leash: int) -> subprocess.Popen[bytes]:
        if troubles:
            raise troubles.pop()
        return start(line, leash)

    monkeypatch.setattr(process, "_start", start_at_last)
    pid = in_process(app, process_tasks.pid)

    with app.worker():
        job = pid.enqueue()
        assert job.result(timeout=LONG)

    assert "lost" not in outcomes(job)


@contextmanager
def worker_process(url: str) -> Iterator[subprocess.Popen[bytes]]:
    script = f"from tests.worker.process_tasks import work_with; work_with({url!r})"
    with subprocess.Popen([sys.executable, "-c", script], cwd=ROOT) as worker:
        try:
            yield worker
        finally:
            worker.kill()


@pytest.mark.slow
@pytest.mark.parametrize("paused", [False, True])
def test_nothing_outlives_a_worker_that_is_killed(app: Mainspring, tmp_path: Path, paused: bool) -> None:
    with worker_process(app.client.url):
        job = app.enqueue("deaf", args=[str(tmp_path)])
        child, sleeper = map(int, read(tmp_path / "started").split())
        if paused:
            job.pause()
            until(lambda: state_of(child).startswith("T"))

    until(lambda: is_dead(child) and is_dead(sleeper))


@pytest.mark.slow
def test_nobody_whom_the_worker_has_forked_keeps_its_processes_alive(app: Mainspring, tmp_path: Path) -> None:
    with worker_process(app.client.url):
        app.enqueue("deaf", args=[str(tmp_path)])
        child, sleeper = map(int, read(tmp_path / "started").split())
        app.enqueue("fork", args=[str(tmp_path)])
        forked = int(read(tmp_path / "forked"))

    try:
        until(lambda: is_dead(child) and is_dead(sleeper))
        assert not is_dead(forked)
    finally:
        os.kill(forked, signal.SIGKILL)


# --- jobs that have cost workers their life ----------------------------------------------------------------------


def lose(app: Mainspring, job: JobHandle[Any], times: int) -> None:
    """Have workers claim *job*, the only one, and die."""
    store = app.client.store
    session = opened_session(store)  # type: ignore[arg-type]
    for _ in range(times):
        (claimed,) = store.claim(session, "default", 1)
        assert claimed.id == job.id
        store.settle([settle(claimed, Lost("the machine went down"))])


@pytest.mark.slow
def test_a_job_that_has_killed_two_workers_is_isolated_from_the_third(app: Mainspring) -> None:
    job = app.enqueue("exit_hard")
    for _ in range(2):
        with worker_process(app.client.url) as worker:
            assert worker.wait() == 3

    with worker_process(app.client.url) as worker:
        assert ended(job) is JobState.FAILED
        other = app.job(app.enqueue("pid").id)
        assert other.result(timeout=LONG) == worker.pid

    found = job.snapshot.failure
    assert found is not None
    assert found.message.startswith("its process exited with code 3")
    assert outcomes(job) == ["lost", "lost", "lost"]


@pytest.mark.parametrize("handler", [process_tasks.pid, process_tasks.pid_later])
def test_a_job_that_was_lost_twice_is_run_in_a_process_of_its_own(app: Mainspring, handler: Callable[..., Any]) -> None:
    pid = app.task(handler)
    once, twice = pid.enqueue(), None
    lose(app, once, times=1)
    with app.worker():
        assert once.result(timeout=LONG) == os.getpid()

    twice = pid.enqueue()
    lose(app, twice, times=2)
    with app.worker():
        assert twice.result(timeout=LONG) != os.getpid()


def test_a_coroutine_in_isolation_is_stopped_like_any_other(app: Mainspring, tmp_path: Path) -> None:
    waiting = app.task(process_tasks.wait_for_ever)
    job = waiting.enqueue(str(tmp_path))
    lose(app, job, times=2)

    with app.worker():
        assert int(read(tmp_path / "started")) != os.getpid()
        job.cancel()
        assert ended(job) is JobState.CANCELLED

    assert read(tmp_path / "stopped") == "cleaned up"


def test_memory_without_end_is_refused_with_a_word_about_the_limit(app: Mainspring) -> None:
    hoard = app.task(retry=ONCE)(process_tasks.hoard)
    job = hoard.enqueue()
    lose(app, job, times=2)

    with app.worker():
        found = failure(job)

    assert (found.type, found.message) == (
        "MemoryError",
        "the attempt needed more than the 1,074 MB of memory that it may use",
    )
    assert "in hoard" in str(found.traceback)
    assert outcomes(job)[2:] == ["failed"]


def test_a_job_that_can_not_be_isolated_is_run_as_usual(app: Mainspring) -> None:
    @app.task
    def local() -> int:
        return os.getpid()

    job = local.enqueue()
    lose(app, job, times=2)

    with app.worker():
        assert job.result(timeout=LONG) == os.getpid()


# --- finding the handler -----------------------------------------------------------------------------------------


def test_a_handler_without_a_name_to_import_is_a_clear_failure(app: Mainspring) -> None:
    nameless = in_process(app, Tool().method, retry=Retry(max_attempts=5, base=0))

    with app.worker():
        job = nameless.enqueue()
        found = failure(job)

    assert "expected executor='process' with a function that can be imported by name, got <bound" in found.message
    assert outcomes(job) == ["failed"]


class Tool:
    def method(self) -> None: ...

    @classmethod
    def of_class(cls) -> None: ...

    @staticmethod
    def of_nothing() -> None: ...


_app = Mainspring("sqlite:///never-made.db")


@_app.task
def decorated() -> None: ...


@pytest.mark.parametrize(
    ("handler", "found"),
    [
        (decorated.task.handler, True),
        (process_tasks.pid, True),
        (Tool.of_class, True),
        (Tool.of_nothing, True),
        (Tool().method, False),
        (functools.partial(process_tasks.pid), False),
        (lambda: None, False),
        (print, True),
    ],
)
def test_a_handler_is_importable_if_its_name_leads_to_it(handler: Callable[..., Any], found: bool) -> None:
    assert importable(Task(name="task", handler=handler)) is found


def test_a_handler_in_the_main_module_is_not_imported_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would mean to run the program again, which nobody expects who did not say executor='process'."""

    main = ModuleType("__main__")
    exec("def handler(): ...", vars(main))
    main.__file__ = __file__
    monkeypatch.setitem(sys.modules, "__main__", main)

    assert reference_to(main.handler) == Reference(__file__, "handler", is_file=True)
    assert not importable(Task(name="task", handler=main.handler))


def test_a_class_in_a_function_has_no_name_to_import() -> None:
    class Local(Exception): ...

    assert reference_to(Local) is None


SCRIPT = """
import json, sys
from mainspring import Mainspring, Retry

class Odd(Exception): ...

app = Mainspring(sys.argv[1])

@app.task(executor="process", retry=Retry(max_attempts=2, base=0, on=(Odd,)))
def double(n: int) -> int:
    if n % 2:
        raise Odd(n)
    return 2 * n

{guard}
    with app.worker():
        even, odd = double.enqueue(4), double.enqueue(3)
        try:
            odd.result(timeout=60)
        except Exception as error:
            print(json.dumps([even.result(timeout=60), str(error), len(odd.attempts())]))
"""


def run_script(tmp_path: Path, url: str, guard: str, *how: str) -> subprocess.CompletedProcess[str]:
    """Run the script, started as *how* says, and return what it printed."""
    (tmp_path / "script.py").write_text(SCRIPT.format(guard=guard))
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, *how, url]
    return subprocess.run(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.parametrize("how", [("script.py",), ("-m", "script")])
def test_a_script_may_have_handlers_and_run_them(tmp_path: Path, sqlite_url: str, how: tuple[str, ...]) -> None:
    done = run_script(tmp_path, sqlite_url, 'if __name__ == "__main__":', *how)

    even, error, attempts = json.loads(done.stdout)
    assert even == 8
    assert error.endswith("failed: 3")
    assert attempts == 2


@pytest.mark.slow
def test_a_script_that_starts_a_worker_when_it_is_imported_is_told(tmp_path: Path, sqlite_url: str) -> None:
    done = run_script(tmp_path, sqlite_url, "if True:", "script.py")

    assert "put that under `if __name__ == '__main__':`" in done.stderr
