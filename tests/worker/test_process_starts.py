"""Child processes on their way to the first job: a start that fails, a slow child, a fork in between."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mainspring import Mainspring
from mainspring.worker.executors import processes
from tests.support.waiting import until
from tests.worker import process_tasks
from tests.worker.children import LONG, failure, imported_in_children, in_process
from tests.worker.endings import outcomes

ROOT = Path(__file__).parents[2]


@pytest.fixture
def url(sqlite_url: str) -> str:
    return sqlite_url


def test_no_job_pays_for_processes_that_can_not_start(
    app: Mainspring, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(processes, "_PAUSES", (0.01,))
    pid = in_process(app, process_tasks.pid)

    with app.worker():
        with monkeypatch.context() as broken:
            broken.setattr(sys, "executable", "/bin/false")
            jobs = [pid.enqueue() for _ in range(5)]
            until(lambda: caplog.text.count("a process was not ready for jobs yet") >= 20)
        for job in jobs:
            assert job.result(timeout=LONG)

    assert {outcome for job in jobs for outcome in outcomes(job)} <= {"returned", "succeeded"}


def test_a_module_of_the_users_may_have_the_name_of_one_that_a_child_imports(
    app: Mainspring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "inspect.py").write_text("raise RuntimeError('my own module')")
    monkeypatch.syspath_prepend(tmp_path)
    pid = in_process(app, process_tasks.pid)

    with app.worker():
        assert pid.enqueue().result(timeout=LONG)


@pytest.mark.slow
def test_a_module_that_kills_its_process_costs_its_own_job(
    app: Mainspring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deadly = in_process(app, imported_in_children(tmp_path, monkeypatch, "os._exit(3)"))

    with app.worker():
        job = deadly.enqueue()
        assert failure(job).message.startswith("its process exited with code 3")

    assert outcomes(job) == ["lost", "lost", "lost"]


def test_a_job_that_its_process_is_slow_to_take_keeps_no_other_waiting(
    app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    pid, weigh = in_process(app, process_tasks.pid), in_process(app, process_tasks.weigh)

    with app.worker():
        slow = pid.enqueue().result(timeout=LONG)
        os.kill(slow, signal.SIGSTOP)
        large = weigh.enqueue('"' * 100_000)  # each is four bytes on its way, and so all more than fit into a socket
        assert pid.enqueue().result(timeout=LONG) != slow
        os.kill(slow, signal.SIGCONT)
        assert large.result(timeout=LONG) == [slow, 100_000]

    assert outcomes(large) == ["succeeded"]


FORK_AMID_START = """
import os, threading
from mainspring.clock import SystemClock
from mainspring.worker.executors import process
from mainspring.worker.executors.messages import Setup

def open_files():
    found = set()
    for number in range(100):
        try:
            os.fstat(number)
        except OSError:
            continue
        found.add(number)
    return found

def fork():
    child = os.fork()
    if child == 0:
        os._exit(len(open_files() - before))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

def start_while_another_forks(line, leash):
    forking.start()
    about_to_fork.wait()
    return start(line, leash)

start, process._start = process._start, start_while_another_forks
about_to_fork, forking = threading.Event(), threading.Thread(target=fork)
os.register_at_fork(before=about_to_fork.set)
before = open_files()
made = process.Process(Setup("sqlite:///never-made.db", None), SystemClock())
forking.join()
"""


def test_a_fork_amid_the_start_of_a_process_inherits_nothing_of_it() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK_AMID_START], cwd=ROOT, capture_output=True, text=True
    )

    assert (done.stdout, done.stderr) == ("0\n", "")
