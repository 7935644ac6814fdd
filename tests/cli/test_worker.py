"""`mainspring worker` in one process."""

from __future__ import annotations

import signal
import socket
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

from mainspring.cli import worker as module
from mainspring.model.job import JobState
from tests.cli.program import assert_refused, eventually, in_process, mainspring, running
from tests.cli.projects import UNSETTLED, jobs_at, sessions_at, write


@pytest.fixture(autouse=True)
def _project(folder: Path) -> None:
    write(folder / "tasks.py")


def enqueue(url: str, *arguments: str) -> None:
    done = in_process("enqueue", "--url", url, *arguments)
    assert done.returncode == 0, done


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_runs_the_jobs_of_its_app_until_it_is_told_to_stop(number: int, url: str, folder: Path) -> None:
    enqueue(url, "greet", "Ada", "loud=true")
    enqueue(url, "fail", "7", "--queue", "mail")

    with running("worker", "--app", "tasks:app", "--url", url, folder=folder) as worker:
        eventually(lambda: all(job.state.final for job in jobs_at(url)))
        worker.signal(number)
        assert worker.end() == 0

    greeted, failed = jobs_at(url)
    assert (greeted.state, greeted.result) == (JobState.SUCCEEDED, '"Hello, Ada!"')
    assert failed.failure is not None
    assert (failed.state, failed.failure.message) == (JobState.FAILED, "number 7")
    assert sessions_at(url) == []
    assert "Traceback" not in worker.output


def test_the_first_signal_lets_running_jobs_end(sqlite_url: str, folder: Path) -> None:
    enqueue(sqlite_url, "linger", "1")

    with running("worker", "--app", "tasks", "--url", sqlite_url, folder=folder) as worker:
        eventually(lambda: jobs_at(sqlite_url)[0].state is JobState.RUNNING)
        worker.signal(signal.SIGTERM)
        assert worker.end() == 0

    assert jobs_at(sqlite_url)[0].state is JobState.SUCCEEDED


def test_the_second_signal_gives_running_jobs_back(sqlite_url: str, folder: Path) -> None:
    enqueue(sqlite_url, "linger", "3600")

    with running("worker", "--app", "tasks", "--url", sqlite_url, "--grace", "1h", folder=folder) as worker:
        eventually(lambda: jobs_at(sqlite_url)[0].state is JobState.RUNNING)
        worker.signal(signal.SIGINT)
        worker.wait_for("another signal stops at once")
        worker.signal(signal.SIGINT)
        worker.wait_for("stopping at once: what still runs goes back to its queue")
        assert worker.end() == 0

    (job,) = jobs_at(sqlite_url)
    assert (job.state, job.attempt) == (JobState.READY, 0)


def test_when_the_grace_is_over_running_jobs_go_back_to_their_queue(sqlite_url: str, folder: Path) -> None:
    enqueue(sqlite_url, "linger", "3600")

    with running("worker", "--app", "tasks", "--url", sqlite_url, "--grace", "0.1", folder=folder) as worker:
        eventually(lambda: jobs_at(sqlite_url)[0].state is JobState.RUNNING)
        worker.signal(signal.SIGTERM)
        assert worker.end() == 0

    assert jobs_at(sqlite_url)[0].state is JobState.READY


THREADS = """
    import atexit, os, threading, time
    from mainspring import Mainspring
    import mainspring.cli.leave

    app = Mainspring()

    @app.task
    def greet() -> None: ...

    threading.Thread(target=threading.Event().wait).start()
"""


def test_a_stopped_worker_does_not_wait_for_threads_that_nobody_waits_for(sqlite_url: str, folder: Path) -> None:
    write(folder / "tasks.py", THREADS + "    atexit.register(os.write, 2, b'at last')\n")

    with running("worker", "--app", "tasks", "--url", sqlite_url, folder=folder) as worker:
        worker.wait_for(" serves ")
        worker.signal(signal.SIGTERM)
        assert worker.end() == 0

    assert worker.output.endswith("mainspring: stopped\nat last")
    file = Path(sqlite_url.removeprefix("sqlite:///"))
    assert list(file.parent.glob(f"{file.name}*")) == [file]


def test_a_stopped_worker_does_not_wait_for_ever_for_what_was_registered_for_the_exit(
    sqlite_url: str, folder: Path
) -> None:
    waiting = "    atexit.register(threading.Event().wait)\n    mainspring.cli.leave._PATIENCE = 0.1\n"
    write(folder / "tasks.py", THREADS + waiting)

    with running("worker", "--app", "tasks", "--url", sqlite_url, folder=folder) as worker:
        worker.wait_for(" serves ")
        worker.signal(signal.SIGTERM)
        assert worker.end() == 0


def test_the_exit_code_tells_that_something_could_not_be_settled(sqlite_url: str, folder: Path) -> None:
    write(folder / "tasks.py", UNSETTLED)

    with running("worker", "--app", "tasks", "--url", sqlite_url, "--log-level", "error", folder=folder) as worker:
        eventually(lambda: sessions_at(sqlite_url))
        worker.signal(signal.SIGTERM)
        assert worker.end() == 1

    (line,) = worker.lines
    assert "ERROR" in line
    assert "the database did not take what became of some jobs; they run again after the lease" in line


def test_a_worker_whose_file_was_deleted_ends_because_only_a_restart_helps(sqlite_url: str, folder: Path) -> None:
    options = ["--app", "tasks", "--url", sqlite_url, "--lease", "1s"]
    with running("worker", *options, folder=folder) as worker:
        worker.wait_for(" serves ")
        for file in Path(sqlite_url.removeprefix("sqlite:///")).parent.glob("mainspring.db*"):
            file.unlink()
        assert worker.end() == 2

    assert "was deleted or replaced while it was open; restart the program" in worker.lines[-1]
    assert "Traceback" not in worker.output


def test_a_worker_says_in_one_line_what_it_is(sqlite_url: str, folder: Path) -> None:
    options = ["--app", "tasks:app", "--url", sqlite_url, "-q", "mail=3,default", "-q", "more", "-c", "5"]
    with running("worker", *options, folder=folder) as worker:
        (line,) = worker.wait_for("app tasks:app")

    assert f"database {sqlite_url}" in line
    assert "queues mail=3, default, more, concurrency 5, 4 tasks: fail, greet, linger, who" in line
    assert " INFO " in line


def test_a_worker_serves_the_queues_of_its_tasks_unless_it_is_told_which(sqlite_url: str, folder: Path) -> None:
    with running("worker", "--app", "tasks", "--url", sqlite_url, folder=folder) as worker:
        (line,) = worker.wait_for("app tasks,")

    assert "queues default, mail, concurrency 8" in line


def test_every_setting_can_come_from_the_environment(sqlite_url: str, folder: Path) -> None:
    settings = {
        "MAINSPRING_APP": "tasks",
        "MAINSPRING_URL": sqlite_url,
        "MAINSPRING_QUEUES": "mail=2,more",
        "MAINSPRING_CONCURRENCY": "3",
        "MAINSPRING_PROCESSES": "1",
        "MAINSPRING_LEASE": "2m",
        "MAINSPRING_GRACE": "1h",
        "MAINSPRING_LOG_LEVEL": "debug",
    }
    with running("worker", folder=folder, env=settings) as worker:
        (line,) = worker.wait_for("app tasks,")
        eventually(lambda: sessions_at(sqlite_url))

    assert f"database {sqlite_url}, queues mail=2, more, concurrency 3" in line
    assert sessions_at(sqlite_url)[0].lease.total_seconds() == 120


def test_an_app_that_names_its_database_goes_there_whatever_the_environment_says(sqlite_url: str, folder: Path) -> None:
    write(folder / "tasks.py", f"from mainspring import Mainspring\napp = Mainspring({sqlite_url!r})")

    with running("worker", "--app", "tasks", folder=folder, env={"MAINSPRING_URL": "sqlite:///other.db"}) as worker:
        worker.wait_for(f"database {sqlite_url}")

    assert not (folder / "other.db").exists()


def test_a_password_does_not_show_in_the_log(postgres_url: str, folder: Path) -> None:
    url = postgres_url.replace("postgres@", "postgres:hunter2@")

    with running("worker", "--app", "tasks", "--url", url, folder=folder) as worker:
        worker.wait_for("serves")

    assert "hunter2" not in worker.output
    assert "postgres:***@" in worker.output


def test_an_app_without_tasks_is_told_so(sqlite_url: str, folder: Path) -> None:
    write(folder / "empty.py", "from mainspring import Mainspring\napp = Mainspring()")

    with running("worker", "--app", "empty", "--url", sqlite_url, folder=folder) as worker:
        worker.wait_for("the app has no tasks")


def test_only_what_is_grave_is_logged_when_that_is_wanted(sqlite_url: str, folder: Path) -> None:
    with running("worker", "--app", "tasks", "--url", sqlite_url, "--log-level", "error", folder=folder) as worker:
        eventually(lambda: sessions_at(sqlite_url))
        worker.signal(signal.SIGTERM)
        assert worker.end() == 0

    assert worker.output == ""


def test_an_app_that_logs_in_its_own_way_keeps_it(sqlite_url: str, folder: Path) -> None:
    setup = "import logging; logging.basicConfig(format='my own %(message)s')"
    write(folder / "mine.py", f"{setup}\nfrom mainspring import Mainspring\napp = Mainspring()")

    with running("worker", "--app", "mine", "--url", sqlite_url, folder=folder) as worker:
        worker.wait_for("my own app mine")


@pytest.mark.parametrize("way", ["option", "environment"])
def test_a_worker_without_an_app_runs_the_commands_that_it_allows(
    way: str, sqlite_url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enqueue(sqlite_url, "mainspring.command", '["echo", "hello; rm"]')
    enqueue(sqlite_url, "mainspring.command", '["cat", "/etc/passwd"]')
    options = ["--allow-command", "echo", "--allow-command", "true"] if way == "option" else []
    if not options:
        monkeypatch.setenv("MAINSPRING_ALLOW_COMMANDS", "echo true")

    with running("worker", *options, "--url", sqlite_url, folder=folder) as worker:
        eventually(lambda: all(job.state.final for job in jobs_at(sqlite_url)))
        worker.signal(signal.SIGTERM)
        assert worker.end() == 0

    echoed, refused = jobs_at(sqlite_url)
    assert echoed.result == '{"exit_code":0,"output":"hello; rm\\n","truncated":false}'
    assert refused.failure is not None
    assert "--allow-command" in refused.failure.message
    assert "commands echo, true" in worker.output


def test_processes_of_a_worker_allow_what_it_was_told(sqlite_url: str, folder: Path) -> None:
    enqueue(sqlite_url, "mainspring.command", '["echo", "hello"]')

    with running("worker", "-p", "2", "--allow-command", "echo", "--url", sqlite_url, folder=folder) as worker:
        eventually(lambda: jobs_at(sqlite_url)[0].state is JobState.SUCCEEDED)
        worker.signal(signal.SIGTERM)
        assert worker.end() == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--allow-command", "/nowhere"], ["by its name or by the path of the folder", "'/nowhere'"]),
        ([], ["needs an app", "--app module:name", "MAINSPRING_APP"]),
        (["--app", "tasks", "--concurrency", "0"], ["concurrency", "1 to 10,000", "0"]),
        (["--app", "tasks", "--concurrency", "many"], ["--concurrency", "integer"]),
        (["--app", "tasks", "--processes", "0"], ["--processes", "1"]),
        (["--app", "tasks", "--lease", "soon"], ["--lease", "'90s'", "'soon'"]),
        (["--app", "tasks", "--grace", "-1"], ["--grace", "'-1'"]),
        (["--app", "tasks", "--retention", "-1d"], ["--retention", "'-1d'"]),
        (["--app", "tasks", "--retention", "0"], ["retention", "longer than 0", "30d"]),
        (["--app", "tasks", "-q", "mail=none"], ["weight of queue 'mail'", "'none'"]),
        (["--app", "tasks", "-q", "mail=0"], ["weight of queue 'mail'", "'0'"]),
        (["--app", "tasks", "-q", f"mail={'9' * 5_000}"], ["weight of queue 'mail'", "1 to 999,999,999"]),
        (["--app", "tasks", "-q", "a b"], ["queue", "'a b'"]),
        (["--app", "tasks", "-q", "mail", "-q", "mail=2"], ["queue 'mail' is named twice"]),
        (["--app", "tasks", "--url", ""], ["sqlite:///mainspring.db"]),
        (["--app", "tasks", "--url", "mysql://user:hunter2@host/name"], ["'mysql'"]),
        (["--app", "tasks", "--log-level", "dbug"], ["did you mean 'debug'?"]),
        (["--app", "tasks", "--reload", "--processes", "2"], ["--reload", "--processes 2"]),
        (["--ap", "tasks"], ["--ap", "--app"]),
        (["tasks"], ["tasks"]),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(arguments: list[str], words: list[str]) -> None:
    done = in_process("worker", *arguments)

    refusal = done.stderr.splitlines(keepends=True)[-1]  # after what it may have logged on its way
    assert_refused(type(done)(done.args, done.returncode, done.stdout, refusal), *words)
    assert "hunter2" not in done.stderr


def test_a_bad_value_in_the_environment_is_refused_and_its_variable_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSPRING_CONCURRENCY", "many")

    assert_refused(in_process("worker", "--app", "tasks"), "MAINSPRING_CONCURRENCY")


@pytest.mark.parametrize(
    "command", [["worker", "--app", "tasks"], ["up", "--app", "tasks", "--port", "0"], ["scheduler"]]
)
def test_the_retention_can_come_from_the_environment(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSPRING_RETENTION", "never")

    assert_refused(in_process(*command), "--retention", "'1h30m'", "'never'")


def test_worker_processes_are_told_the_retention(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    class Recorder:
        def __init__(self, command: list[str]) -> None:
            commands.append(command)

        def run(self, *_: object) -> int:
            return 0

    monkeypatch.setattr(module, "Supervisor", Recorder)

    assert in_process("worker", "--app", "tasks", "--processes", "2", "--retention", "7d").returncode == 0
    assert "--retention=7d" in commands[0]


def test_a_lease_that_is_too_short_is_refused(folder: Path) -> None:
    assert_refused(mainspring("worker", "--app", "tasks", "--log-level", "error", "--lease", "1ms"), "lease", "100ms")


def test_a_database_that_can_not_be_reached_is_named_in_one_sentence(tmp_path: Path, folder: Path) -> None:
    url = f"postgresql://user:hunter2@/name?host={tmp_path}"

    done = mainspring("worker", "--app", "tasks", "--log-level", "error", "--url", url, folder=folder)

    assert_refused(done, "is it running there?", str(tmp_path))
    assert "hunter2" not in done.stderr


def metrics_at(port: int) -> str:
    with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as reply:
        told: str = reply.read().decode()
        return told
    return ""


def test_metrics_are_served_on_the_port_that_is_given(sqlite_url: str, folder: Path) -> None:
    options = ("--app", "tasks:app", "--url", sqlite_url, "--metrics-port", "0")
    assert_refused(in_process("worker", *options), "expected --metrics-port to be from 1 to 65535")
    port = free_port()

    with running("worker", *options[:-1], str(port), folder=folder) as worker:
        worker.wait_for(f"serving metrics at http://127.0.0.1:{port}/metrics")
        eventually(lambda: 'mainspring_workers{state="alive"} 1.0' in metrics_at(port))
        worker.signal(signal.SIGTERM)
        assert worker.end() == 0


def test_each_of_several_processes_serves_metrics_on_a_port_of_its_own(sqlite_url: str, folder: Path) -> None:
    port = free_port()
    options = ("--app", "tasks:app", "--url", sqlite_url, "--metrics-port", str(port), "--processes", "2")

    with running("worker", *options, folder=folder) as worker:
        eventually(lambda: all("mainspring_database_up 1.0" in metrics_at(one) for one in (port, port + 1)))
        worker.signal(signal.SIGTERM)
        assert worker.end() == 0


def test_a_port_that_is_taken_keeps_nobody_from_working(sqlite_url: str, folder: Path) -> None:
    enqueue(sqlite_url, "greet", "Ada")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = ("--app", "tasks:app", "--url", sqlite_url, "--metrics-port", str(port))

        with running("worker", *options, folder=folder) as worker:
            worker.wait_for(f"can't serve metrics on port {port}")
            eventually(lambda: jobs_at(sqlite_url)[0].state is JobState.SUCCEEDED)
            worker.signal(signal.SIGTERM)
            assert worker.end() == 0


def test_metrics_for_other_hosts_need_a_token(sqlite_url: str) -> None:
    options = ("--app", "tasks:app", "--url", sqlite_url, "--metrics-port", "9400", "--metrics-host", "0.0.0.0")

    assert_refused(mainspring("worker", *options), "expected metrics to be served to this host only")


def free_port() -> int:
    """Return a port that is free, and so is the next."""
    while True:
        with suppress(OSError), socket.create_server(("127.0.0.1", 0)) as first:
            port: int = first.getsockname()[1]
            with socket.create_server(("127.0.0.1", port + 1)):
                return port
