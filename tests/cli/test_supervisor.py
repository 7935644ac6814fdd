"""`mainspring worker --processes`: workers in processes of their own."""

from __future__ import annotations

import os
import pty
import re
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from mainspring.model.job import JobState
from tests.cli.program import Running, assert_refused, eventually, in_process, mainspring, running
from tests.cli.projects import UNSETTLED, jobs_at, sessions_at, write

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _project(folder: Path) -> None:
    write(folder / "tasks.py")


def workers(url: str, processes: int, folder: Path, *options: str) -> Running:
    return running("worker", "--app", "tasks", "--url", url, "--processes", str(processes), *options, folder=folder)


def pids(running: Running, processes: int) -> list[int]:
    """Return the ids of the worker processes, once all of them work."""
    return [int(line.split("[")[1].split("]")[0]) for line in running.wait_for(" serves ", processes)]


def run_a_job(url: str, supervised: Running, seconds: str) -> None:
    """Have one of two workers begin a job that takes a while."""
    pids(supervised, 2)
    in_process("enqueue", "--url", url, "linger", seconds)
    eventually(lambda: jobs_at(url)[0].state is JobState.RUNNING)


def test_so_many_processes_work_and_stop_together(url: str, folder: Path) -> None:
    with workers(url, 3, folder) as supervised:
        working = pids(supervised, 3)
        assert len(sessions_at(url)) == 3
        supervised.signal(signal.SIGTERM)
        assert supervised.end() == 0

    assert len(set(working) | {supervised.pid}) == 4
    assert supervised.output.count("mainspring: stopped") == 3
    assert sessions_at(url) == []


def test_a_worker_that_is_killed_is_started_again(sqlite_url: str, folder: Path) -> None:
    with workers(sqlite_url, 2, folder) as supervised:
        victim = pids(supervised, 2)[0]
        os.kill(victim, signal.SIGKILL)
        supervised.wait_for(f"worker process {victim} was killed by SIGKILL; starting another in 0.5 s")
        assert len(set(pids(supervised, 3))) == 3
        supervised.signal(signal.SIGTERM)
        assert supervised.end() == 0


def test_workers_stop_in_order_when_their_supervisor_is_killed(sqlite_url: str, folder: Path) -> None:
    with workers(sqlite_url, 2, folder) as supervised:
        run_a_job(sqlite_url, supervised, "2")
        supervised.signal(signal.SIGKILL)
        supervised.end()

    assert supervised.output.count("mainspring: stopped") == 2
    assert jobs_at(sqlite_url)[0].state is JobState.SUCCEEDED
    assert sessions_at(sqlite_url) == []


def test_an_interruption_from_the_terminal_reaches_the_workers_once(sqlite_url: str, folder: Path) -> None:
    with workers(sqlite_url, 2, folder) as supervised:
        run_a_job(sqlite_url, supervised, "2")
        os.killpg(supervised.pid, signal.SIGINT)
        assert supervised.end() == 0

    assert jobs_at(sqlite_url)[0].state is JobState.SUCCEEDED
    assert "Traceback" not in supervised.output


def test_a_service_manager_that_signals_every_process_lets_running_jobs_end(sqlite_url: str, folder: Path) -> None:
    with workers(sqlite_url, 2, folder) as supervised:
        run_a_job(sqlite_url, supervised, "2")
        supervised.signal(signal.SIGTERM)
        supervised.wait_for("mainspring.worker: stopping", 2)
        for worker in pids(supervised, 2):
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGTERM)
        assert supervised.end() == 0

    assert jobs_at(sqlite_url)[0].state is JobState.SUCCEEDED


def test_the_exit_code_tells_that_a_worker_could_not_settle_something(sqlite_url: str, folder: Path) -> None:
    write(folder / "tasks.py", UNSETTLED)
    with workers(sqlite_url, 2, folder) as supervised:
        pids(supervised, 2)
        supervised.signal(signal.SIGTERM)
        assert supervised.end() == 1

    assert supervised.output.count("exited with code 1 while it stopped") == 2


def test_a_second_signal_stops_all_at_once(sqlite_url: str, folder: Path) -> None:
    with workers(sqlite_url, 2, folder, "--grace", "1h") as supervised:
        run_a_job(sqlite_url, supervised, "3600")
        supervised.signal(signal.SIGINT)
        supervised.wait_for("mainspring.worker: stopping", 2)
        supervised.signal(signal.SIGINT)
        assert supervised.end() == 0

    assert jobs_at(sqlite_url)[0].state is JobState.READY


def test_a_third_signal_kills_what_does_not_stop(sqlite_url: str, folder: Path) -> None:
    deaf = """
        import time
        from mainspring import Mainspring
        app = Mainspring()

        @app.task
        def deafen() -> None: ...

        import mainspring.node
        mainspring.node.Node.stop = lambda self: time.sleep(60)
    """
    write(folder / "tasks.py", deaf)
    with workers(sqlite_url, 2, folder) as supervised:
        pids(supervised, 2)
        for heard in ("stopping: what has started may end", "stopping at once", "killing"):
            supervised.signal(signal.SIGTERM)
            supervised.wait_for(f"mainspring.supervisor: {heard}")
        assert supervised.end() == 1

    assert supervised.output.count("was killed by SIGKILL while it stopped") == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--app", "task"], ["did you mean 'tasks'?"]),
        (["--app", "tasks", "--url", "nonsense"], ["sqlite:///mainspring.db"]),
    ],
)
def test_what_is_wrong_with_all_workers_is_said_once(options: list[str], words: list[str], folder: Path) -> None:
    done = mainspring("worker", "--processes", "3", "--log-level", "error", *options, folder=folder)

    assert_refused(done, *words)


def test_a_worker_that_can_not_start_any_more_is_tried_again(sqlite_url: str, folder: Path) -> None:
    with workers(sqlite_url, 2, folder) as supervised:
        victim = pids(supervised, 2)[0]
        write(folder / "tasks.py", "1 / 0")
        os.kill(victim, signal.SIGKILL)
        supervised.wait_for("exited with code 2; starting another in 1 s")
        write(folder / "tasks.py")
        pids(supervised, 3)
        supervised.signal(signal.SIGTERM)
        assert supervised.end() == 0


def test_what_a_job_starts_does_not_know_of_the_supervisor(sqlite_url: str, folder: Path) -> None:
    spying = """
        import os, re
        from mainspring import Mainspring
        app = Mainspring()

        @app.task
        def look() -> list[str]:
            return [name for name in os.environ if name.startswith("MAINSPRING_")]
    """
    write(folder / "tasks.py", spying)
    in_process("enqueue", "--url", sqlite_url, "look")
    with workers(sqlite_url, 2, folder) as supervised:
        eventually(lambda: jobs_at(sqlite_url)[0].state.final)
        supervised.signal(signal.SIGTERM)
        supervised.end()

    assert jobs_at(sqlite_url)[0].result == "[]"
    assert re.search(r"\[\d+\] mainspring", supervised.output)


def test_a_module_of_the_users_may_have_the_name_of_one_that_workers_import(sqlite_url: str, folder: Path) -> None:
    write(folder / "inspect.py", "raise RuntimeError('my own module')")
    # With -P, as a console script is started: the first process does not look in the present folder either.
    command = ["-P", "-m", "mainspring", "worker", "--app", "tasks", "--url", sqlite_url, "--processes", "2"]

    with Running(*command, folder=folder) as supervised:
        pids(supervised, 2)
        supervised.signal(signal.SIGTERM)
        assert supervised.end() == 0


@pytest.mark.parametrize("option", ["--processes=2", "--reload"])
def test_workers_do_not_read_from_the_terminal(option: str, sqlite_url: str, folder: Path) -> None:
    reading = """
        import os
        from mainspring import Mainspring
        app = Mainspring()

        @app.task
        def read() -> str:
            return os.read(0, 10).decode()
    """
    write(folder / "tasks.py", reading)
    in_process("enqueue", "--url", sqlite_url, "read")
    terminal, end = pty.openpty()
    os.write(terminal, b"typed\n")
    with running("worker", "--app", "tasks", "--url", sqlite_url, option, folder=folder, stdin=end) as supervised:
        eventually(lambda: jobs_at(sqlite_url)[0].state.final)
        supervised.signal(signal.SIGTERM)
        assert supervised.end() == 0
    os.close(terminal)
    os.close(end)

    assert jobs_at(sqlite_url)[0].result == '""'


@pytest.fixture
def heir(folder: Path) -> Iterator[Path]:
    """A project whose worker dies at its start, while a process that it has left behind keeps its line open."""
    dying = """
        import os, stat, subprocess
        files = [number for number in range(3, 100) if os.path.exists(f"/dev/fd/{number}")]
        lines = [number for number in files if stat.S_ISSOCK(os.fstat(number).st_mode)]
        heir = subprocess.Popen(["sleep", "300"], pass_fds=lines, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        open("heir", "w").write(str(heir.pid))
        os._exit(3)
    """
    write(folder / "tasks.py", dying)
    yield folder
    os.kill(int((folder / "heir").read_text()), signal.SIGKILL)


def test_a_worker_that_dies_is_missed_though_its_line_is_open(sqlite_url: str, heir: Path) -> None:
    with workers(sqlite_url, 2, heir) as supervised:
        assert supervised.end() == 3


def test_a_reloading_worker_that_dies_is_missed_though_its_line_is_open(sqlite_url: str, heir: Path) -> None:
    with running("worker", "--app", "tasks", "--url", sqlite_url, "--reload", folder=heir) as supervised:
        supervised.wait_for("the worker exited with code 3; waiting for its code to change")
        supervised.signal(signal.SIGTERM)
        assert supervised.end() == 0
