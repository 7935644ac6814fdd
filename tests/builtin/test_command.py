"""`mainspring.command`: a program as a job, and nothing of it left when the job has ended."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mainspring import JobState, Mainspring, every
from mainspring.errors import InvalidPayload, InvalidValue
from mainspring.job_handle import JobHandle
from mainspring.node import Node
from mainspring.worker.executors import commands as executor
from mainspring.worker.executors.programs import Programs
from tests.builtin.scripts import write_scripts
from tests.support.waiting import until
from tests.worker.children import is_dead, read, state_of
from tests.worker.endings import ended, outcomes

LONG = "60s"
ON_BOTH = pytest.mark.parametrize("url", ["sqlite", "postgres"], indirect=True)


@pytest.fixture
def url(request: pytest.FixtureRequest) -> str:
    """A SQLite file, unless the test runs ON_BOTH: most of what is tested here is the same on any database."""
    found: str = request.getfixturevalue(f"{getattr(request, 'param', 'sqlite')}_url")
    return found


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    return write_scripts(tmp_path / "jobs")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where commands leave word for the test."""
    (tmp_path / "place").mkdir()
    return tmp_path / "place"


@pytest.fixture
def node(app: Mainspring, jobs: Path) -> Iterator[Node]:
    with app.worker(commands=["sh", "cat", str(jobs)]) as node:
        yield node


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "GRACE", 0.2)


def details(job: JobHandle[Any]) -> Any:
    return json.loads(job.attempts()[-1].details or "null")


def failure(job: JobHandle[Any]) -> tuple[str, str]:
    assert ended(job) is JobState.FAILED
    found = job.refresh().failure
    assert found is not None
    return found.type.rpartition(".")[2], found.message


def shown(app: Mainspring, jobs: Path, *arguments: str, **kwargs: Any) -> Any:
    """Return what a command sees of itself."""
    result = app.command.enqueue([str(jobs / "show"), *arguments], **kwargs).result(timeout=LONG)
    return json.loads(result["output"])


def pid_in(file: Path) -> int:
    return int(read(file))


# --- what a command is, and what it is given ----------------------------------------------------------------------


@ON_BOTH
def test_a_command_runs_and_what_it_says_is_its_result_and_its_log(app: Mainspring, node: Node) -> None:
    job = app.enqueue("mainspring.command", kwargs={"argv": ["sh", "-c", "echo one; echo two >&2; printf three"]})

    assert job.result(timeout=LONG) == {"exit_code": 0, "output": "one\nthree", "truncated": False}
    assert sorted((line.level, line.message) for line in job.logs()) == [
        ("info", "one"),
        ("info", "three"),
        ("warning", "two"),
    ]
    assert outcomes(job) == ["succeeded"]
    said = details(job)
    assert (said["exit_code"], said["output_bytes"]) == (0, 13)
    assert said["seconds"] > 0
    assert said["cpu_seconds"] >= 0


@pytest.mark.parametrize(
    "argument",
    [
        "; rm -rf /",
        "$(touch canary)",
        "`touch canary`",
        "a\nb",
        "-rf",
        "--",
        "&& false",
        "| cat",
        "'\"\\",
        "*",
        "ü ☃",
        "",
    ],
)
def test_arguments_are_data_whatever_they_look_like(app: Mainspring, node: Node, jobs: Path, argument: str) -> None:
    seen = shown(app, jobs, argument, "last")

    assert seen["argv"] == [argument, "last"]
    assert seen["here"] == []


def test_nothing_of_the_workers_environment_reaches_a_command(
    app: Mainspring, node: Node, jobs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MAINSPRING_URL", "MAINSPRING_KEYS", "DATABASE_URL", "AWS_SECRET_ACCESS_KEY", "PYTHONPATH"):
        monkeypatch.setenv(name, "canary-7341")
    monkeypatch.setenv("TZ", "UTC")

    job = app.command.enqueue([str(jobs / "show")], env={"MODE": "fast"})
    env = json.loads(job.result(timeout=LONG)["output"])["env"]

    assert "canary-7341" not in json.dumps(env)
    assert (env.pop("MODE"), env.pop("TZ")) == ("fast", "UTC")
    assert (env.pop("MAINSPRING_JOB_ID"), env.pop("MAINSPRING_ATTEMPT")) == (str(job.id), "1")
    assert set(env) <= {"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "USER", "TMPDIR"}


def test_its_launcher_has_nothing_of_it_either(
    app: Mainspring, node: Node, jobs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAINSPRING_KEYS", "canary-7341")
    job = app.command.enqueue(["sh", "-c", "cat /proc/$PPID/environ"])
    assert "canary-7341" not in job.result(timeout=LONG)["output"]


@pytest.mark.parametrize(
    "name",
    [
        "LD_PRELOAD",
        "GCONV_PATH",
        "BASH_ENV",
        "ENV",
        "PATH",
        "SHELLOPTS",
        "PS4",
        "PYTHONWARNINGS",
        "BROWSER",
        "GIT_PAGER",
        "OPENSSL_CONF",
        "DOTNET_STARTUP_HOOKS",
    ],
)
def test_a_job_cant_have_the_loader_or_a_shell_run_other_code(app: Mainspring, name: str) -> None:
    why = f"a job can't set {name}, which makes a program run other code than its own"
    with pytest.raises(InvalidPayload, match=why):
        app.command.enqueue(["sh", "-c", "true"], env={name: "/tmp/evil.so"})
    with pytest.raises(InvalidPayload, match=why):
        app.schedules.add("evil", "mainspring.command", every("1h"), kwargs={"argv": ["sh"], "env": {name: "x"}})
    assert app.jobs() == []


def test_nor_if_another_job_says_how(app: Mainspring, jobs: Path) -> None:
    @app.task
    def environment() -> dict[str, str]:
        return {"LD_PRELOAD": "/tmp/evil.so"}

    with app.workflow("two") as wf:
        last = wf.add(app.command, ["sh", "-c", "true"], env=wf.add(environment))
    wf.enqueue()
    with app.worker(commands=["sh"]):
        job = app.job(last.id)
        assert failure(job)[0] == "InvalidPayload"
    assert outcomes(job) == ["failed"]


def test_it_works_in_a_private_folder_that_is_gone_afterwards(app: Mainspring, node: Node, jobs: Path) -> None:
    seen = shown(app, jobs)
    assert (seen["mode"], seen["umask"], seen["env"]["TMPDIR"]) == ("0o700", "0o77", seen["cwd"])
    assert not Path(seen["cwd"]).exists()

    made = app.command.enqueue(["sh", "-c", "mkdir -p a/b; echo x > a/b/c; chmod 0 a; pwd"]).result(timeout=LONG)
    assert not Path(made["output"].strip()).exists()


def test_it_works_where_it_is_told_to_and_that_stays(app: Mainspring, node: Node, place: Path) -> None:
    app.command.enqueue(["sh", "-c", "echo x > kept"], cwd=str(place)).result(timeout=LONG)
    assert (place / "kept").read_text() == "x\n"
    assert "TMPDIR" not in app.command.enqueue(["sh", "-c", "env"], cwd=str(place)).result(timeout=LONG)["output"]


def test_it_reads_what_it_is_given_or_nothing(app: Mainspring, node: Node) -> None:
    assert app.command.enqueue(["cat"]).result(timeout=LONG)["output"] == ""
    text = "grüße\n" * 20_000
    result = app.command.enqueue(["sh", "-c", "wc -c"], stdin=text).result(timeout=LONG)
    assert int(result["output"]) == len(text.encode())


def test_it_has_a_session_of_its_own_no_way_to_more_rights_and_no_file_of_ours(
    app: Mainspring, node: Node, jobs: Path
) -> None:
    seen = shown(app, jobs)
    assert (seen["leads"], seen["no_new_privs"], seen["files"]) == (True, "1", [0, 1, 2])
    assert seen["held"] == 4  # those three, and the folder that it lists
    assert int(seen["ignored"], 16) & (1 << (signal.SIGTERM - 1)) == 0
    assert seen["limits"]["CORE"] == 0


def test_commands_run_side_by_side(app: Mainspring, jobs: Path, place: Path) -> None:
    with app.worker(commands=["sh"], concurrency=3):
        script = f"touch {place}/$0; while [ $(ls {place} | wc -l) -lt 3 ]; do sleep 0.01; done"
        running = [app.command.enqueue(["sh", "-c", script, str(number)]) for number in range(3)]
        for job in running:
            job.result(timeout=LONG)


# --- what may run ------------------------------------------------------------------------------------------------


def test_a_worker_that_allows_none_runs_none(app: Mainspring) -> None:
    with app.worker():
        job = app.command.enqueue(["sh", "-c", "true"])
        other = app.http.enqueue("http://127.0.0.1/")
        assert ended(other) is JobState.FAILED  # so it has looked
        assert job.state is JobState.READY


@pytest.mark.parametrize(
    "program", ["rm", "sh ", "SH", "/bin/sh", "./show", "show", "jobs/show", "../bin/sh", "", ".", "/"]
)
def test_what_is_not_allowed_is_refused_for_good(app: Mainspring, node: Node, program: str) -> None:
    job = app.command.enqueue([program, "-c", "true"])
    kind, message = failure(job)
    assert kind == "CommandRefused"
    assert "does not allow" in message
    assert outcomes(job) == ["failed"]


def test_a_link_that_leads_out_of_an_allowed_folder_is_refused(app: Mainspring, node: Node, jobs: Path) -> None:
    (jobs / "innocent").symlink_to("/bin/sh")
    (jobs / "inside").symlink_to(jobs / "show")
    beside = jobs.parent / "jobs-evil"
    beside.mkdir()
    (beside / "sh").symlink_to("/bin/sh")

    for program in (
        jobs / "innocent",
        jobs / ".." / "jobs-evil" / "sh",
        beside / "sh",
        jobs / ".." / ".." / "sh",
        jobs,
    ):
        assert failure(app.command.enqueue([str(program), "-c", "true"]))[0] == "CommandRefused"
    assert json.loads(app.command.enqueue([str(jobs / "inside"), "a"]).result(timeout=LONG)["output"])["argv"] == ["a"]


def test_a_name_is_looked_for_where_the_worker_looks_and_not_where_the_job_says(
    app: Mainspring, node: Node, place: Path
) -> None:
    evil = place / "sh"
    evil.write_text("#!/bin/sh\necho evil\n")
    evil.chmod(0o755)
    job = app.command.enqueue(["sh", "-c", "echo good"], cwd=str(place))
    assert job.result(timeout=LONG)["output"] == "good\n"


def test_what_is_allowed_and_can_not_be_run_says_why(app: Mainspring, jobs: Path) -> None:
    (jobs / "plain").write_text("no program")
    (jobs / "strange").write_text("#!/nowhere/interpreter\n")
    (jobs / "strange").chmod(0o755)
    with app.worker(commands=["nowhere-to-be-found", "sh", str(jobs)]):
        assert "not installed" in failure(app.command.enqueue(["nowhere-to-be-found"]))[1]
        assert "no file that can be executed" in failure(app.command.enqueue([str(jobs / "plain")]))[1]
        assert "could not be started" in failure(app.command.enqueue([str(jobs / "strange")]))[1]
        why = "'sh' could not be started: its folder /nowhere can't be entered: No such file or directory"
        assert failure(app.command.enqueue(["sh"], cwd="/nowhere"))[1] == why


def test_what_is_allowed_and_not_there_is_told_at_the_start(caplog: pytest.LogCaptureFixture) -> None:
    Programs(["sh", "nowhere-to-be-found"])

    (told,) = caplog.messages
    assert told == "the command nowhere-to-be-found is allowed, and there is no such program on this worker's PATH"


def test_what_passes_is_tried_again(app: Mainspring, node: Node, jobs: Path) -> None:
    shutil.copy("/bin/true", jobs / "busy")
    with (jobs / "busy").open("ab"):  # a program that is being written can't be run
        job = app.command.enqueue([str(jobs / "busy")])
        until(lambda: job.state is JobState.RETRYING)
    found = job.refresh().failure
    assert found is not None
    assert "could not be started: Text file busy" in found.message


def test_a_program_in_a_folder_is_run_by_its_own_name_whatever_leads_there(
    app: Mainspring, node: Node, jobs: Path, place: Path
) -> None:
    shutil.copy("/bin/sh", jobs / "shell")
    (place / "other-name").symlink_to(jobs / "shell")
    for called in (place / "other-name", jobs / ".." / "jobs" / "shell"):
        result = app.command.enqueue([str(called), "-c", "tr '\\0' '\\n' < /proc/$$/cmdline"]).result(timeout=LONG)
        assert result["output"].splitlines()[0] == str(jobs / "shell")


@pytest.mark.parametrize("allowed", [["/nowhere/at/all"], ["relative/folder"], [""], [".."], "sh", [5]])
def test_an_allow_list_that_means_nothing_is_refused(allowed: Any) -> None:
    with pytest.raises(InvalidValue):
        Programs(allowed)


@pytest.mark.parametrize(
    "kwargs",
    [
        {"argv": []},
        {"argv": "ls -l"},
        {"argv": ["ls", 5]},
        {"argv": ["a\0b"]},
        {"argv": ["ls"], "env": {"A B": "c"}},
        {"argv": ["ls"], "env": {"A=B": "c"}},
        {"argv": ["ls"], "env": {"A": 5}},
        {"argv": ["ls"], "cwd": "relative"},
        {"argv": ["ls"], "ok": [-1]},
        {"argv": ["ls"], "ok": []},
        {"argv": ["ls"], "timeout": "9999999w"},
        {"argv": ["ls"], "limits": {"ram": 5}},
        {"argv": ["ls"], "limits": {"memory": 0}},
        {"argv": ["ls"], "timeout": "soon"},
        {"argv": ["ls"], "shell": True},
    ],
)
def test_arguments_are_checked_when_it_is_enqueued(app: Mainspring, kwargs: dict[str, Any]) -> None:
    with pytest.raises(InvalidPayload):
        app.enqueue("mainspring.command", kwargs=kwargs)


# --- what it comes to --------------------------------------------------------------------------------------------


def test_a_bad_end_fails_the_attempt_with_its_last_words(app: Mainspring, node: Node) -> None:
    job = app.command.enqueue(["sh", "-c", "echo so far so good; echo disk full >&2; exit 3"], max_attempts=1)
    assert failure(job) == ("CommandFailed", "'sh' exited with code 3; its last lines:\nso far so good\ndisk full")
    assert details(job)["exit_code"] == 3
    assert outcomes(job) == ["failed"]


def test_it_is_tried_again_as_often_as_the_job_says(app: Mainspring, node: Node) -> None:
    job = app.command.enqueue(["sh", "-c", "exit 1"], max_attempts=2)
    until(lambda: job.state is JobState.RETRYING)
    assert details(job)["exit_code"] == 1


def test_which_exit_codes_are_a_success_can_be_said(app: Mainspring, node: Node) -> None:
    assert app.command.enqueue(["sh", "-c", "exit 24"], ok=[0, 24]).result(timeout=LONG)["exit_code"] == 24
    assert failure(app.command.enqueue(["sh", "-c", "exit 0"], ok=[1], max_attempts=1))[0] == "CommandFailed"


def test_a_command_that_is_killed_says_by_what(app: Mainspring, node: Node) -> None:
    job = app.command.enqueue(["sh", "-c", "kill -9 $$"], max_attempts=1)
    assert failure(job) == ("CommandFailed", "'sh' was killed by SIGKILL")
    assert details(job)["signal"] == "SIGKILL"


@pytest.mark.parametrize(
    ("argv", "limits", "how"),
    [
        (["sh", "-c", "while :; do :; done"], {"cpu": 1}, "SIGXCPU"),
        (["sh", "-c", "head -c 1000000 /dev/zero > file"], {"file_size": 1_000}, "code 153"),
        (["sh", "-c", "exec 3</dev/null 4</dev/null 5</dev/null"], {"files": 5}, "code 2"),
        (["{jobs}/greedy"], {"memory": 300_000_000}, "MemoryError"),
    ],
)
def test_limits_bite(
    app: Mainspring, node: Node, jobs: Path, argv: list[str], limits: dict[str, int], how: str
) -> None:
    argv[0] = argv[0].format(jobs=jobs)
    assert how in failure(app.command.enqueue(argv, limits=limits, max_attempts=1))[1]


def test_limits_are_the_commands_and_no_others(app: Mainspring, node: Node, jobs: Path) -> None:
    before = [resource.getrlimit(kind) for kind in (resource.RLIMIT_AS, resource.RLIMIT_NPROC)]
    wanted = {"cpu": 70, "memory": 4_000_000_000, "files": 50, "processes": 5_000, "file_size": 7_000_000}
    seen = shown(app, jobs, limits=wanted)["limits"]
    assert seen | {"CORE": 0} == {
        "CPU": 70,
        "AS": 4_000_000_000,
        "NOFILE": 50,
        "NPROC": 5_000,
        "FSIZE": 7_000_000,
        "CORE": 0,
    }
    assert [resource.getrlimit(kind) for kind in (resource.RLIMIT_AS, resource.RLIMIT_NPROC)] == before


@pytest.mark.slow
def test_a_gigabyte_of_output_is_counted_and_not_held(app: Mainspring, node: Node) -> None:
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from now on
    before = memory("VmHWM")
    job = app.command.enqueue(["sh", "-c", "yes 0123456789 | head -c 1000000000; echo; echo last"], timeout="5m")

    result = job.result(timeout="5m")

    assert memory("VmHWM") - before < 50_000_000
    assert (result["truncated"], len(result["output"]), result["output"][-5:]) == (True, 32_768, "last\n")
    assert details(job)["output_bytes"] == 1_000_000_006
    lines = job.logs()
    assert len(lines) <= 10_000
    assert lines[-1].message == "this attempt has logged too much; what follows is not kept"


def memory(what: str) -> int:
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(what)]
    return int(line.split()[1]) * 1024


def test_output_that_is_no_text_has_no_lines_or_ends_without_one_is_kept(app: Mainspring, node: Node) -> None:
    job = app.command.enqueue(["sh", "-c", r"printf 'a\000b\377c\r\n'; head -c 25000 /dev/zero | tr '\0' x"])
    result = job.result(timeout=LONG)
    assert result["output"].startswith("a\\x00b\\xffc")
    first, *pieces = [line.message for line in job.logs()]
    assert first == "a\\x00b\\xffc"
    assert "".join(pieces) == "x" * 25_000


# --- how it is ended ---------------------------------------------------------------------------------------------


def brood(app: Mainspring, jobs: Path, place: Path, *arguments: str, **kwargs: Any) -> tuple[JobHandle[Any], list[int]]:
    """Return a job, and the processes that came of it: some have left its session, and lost their parents."""
    job = app.command.enqueue([str(jobs / "brood"), str(place), *arguments], **kwargs)
    names = ("child", "grandchild") if arguments else ("main", "child", "grandchild")
    return job, [pid_in(place / name) for name in names]


def test_everything_is_dead_after_a_timeout_also_what_has_left_the_session(
    app: Mainspring, node: Node, jobs: Path, place: Path
) -> None:
    job, pids = brood(app, jobs, place, timeout="3s", max_attempts=1)
    kind, message = failure(job)
    assert (kind, message) == ("TimeExpired", "the command took longer than its timeout of 3 s")
    assert [is_dead(pid) for pid in pids] == [True] * 3
    assert outcomes(job) == ["timed_out"]
    assert details(job)["signal"] == "SIGKILL"


def test_everything_is_dead_after_a_cancel(app: Mainspring, node: Node, jobs: Path, place: Path) -> None:
    job, pids = brood(app, jobs, place)
    job.cancel()
    assert ended(job) is JobState.CANCELLED
    assert [is_dead(pid) for pid in pids] == [True] * 3
    assert outcomes(job) == ["cancelled"]
    assert details(job)["signal"] == "SIGKILL"


def test_who_has_another_id_every_moment_is_dead_too(app: Mainspring, node: Node, jobs: Path, place: Path) -> None:
    job = app.command.enqueue([str(jobs / "slippery"), str(place)])
    read(place / "slipping")
    job.cancel()
    assert ended(job) is JobState.CANCELLED
    assert running_with(place) == []


@pytest.mark.parametrize(("code", "state"), [("0", JobState.SUCCEEDED), ("9", JobState.FAILED)])
def test_what_a_command_leaves_running_does_not_outlive_it(
    app: Mainspring, node: Node, jobs: Path, place: Path, code: str, state: JobState
) -> None:
    job, pids = brood(app, jobs, place, code, max_attempts=1)
    assert ended(job) is state
    assert [is_dead(pid) for pid in pids] == [True] * 2
    assert details(job)["exit_code"] == int(code)


def test_a_command_is_asked_to_end_before_it_is_killed(
    app: Mainspring, node: Node, jobs: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "GRACE", 3_600.0)
    job = app.command.enqueue([str(jobs / "polite"), str(place)])
    read(place / "main")
    job.cancel()
    assert ended(job) is JobState.CANCELLED
    assert (place / "told").exists()
    assert [line.message for line in job.logs()] == ["put away"]


def test_everything_is_dead_when_the_worker_stops_and_the_job_goes_back(
    app: Mainspring, jobs: Path, place: Path
) -> None:
    with app.worker(commands=[str(jobs)], grace=0):
        job, pids = brood(app, jobs, place)
    assert [is_dead(pid) for pid in pids] == [True] * 3
    assert job.state is JobState.READY


WORKER = """
import sys
from mainspring import Mainspring
app = Mainspring(sys.argv[1])
with app.worker(commands=[sys.argv[2]]) as node:
    node.asked.wait()
"""


@pytest.mark.parametrize("frozen", [False, True])
def test_everything_is_dead_when_the_worker_is_killed(app: Mainspring, jobs: Path, place: Path, frozen: bool) -> None:
    worker = subprocess.Popen([sys.executable, "-c", WORKER, app.client.url, str(jobs)])
    job, pids = brood(app, jobs, place)
    if frozen:
        job.pause()
        until(lambda: all(state_of(pid).startswith("T") for pid in pids))
    worker.kill()
    worker.wait()
    until(lambda: all(is_dead(pid) for pid in pids))


STOPS_BEFORE_IT_LISTENS = """
import os, signal
from mainspring.worker.executors.command import Command
Command.hear = lambda self: os.kill(os.getpid(), signal.SIGSTOP)
"""


def test_everything_is_dead_when_a_worker_that_stood_still_is_killed(app: Mainspring, jobs: Path, place: Path) -> None:
    program = STOPS_BEFORE_IT_LISTENS + WORKER
    worker = subprocess.Popen([sys.executable, "-c", program, app.client.url, str(jobs)])
    _, pids = brood(app, jobs, place)
    until(lambda: state_of(worker.pid).startswith("T"))
    worker.kill()
    worker.wait()
    until(lambda: all(is_dead(pid) for pid in pids))


@pytest.mark.parametrize("number", range(5))
def test_a_cancel_that_comes_while_it_is_launched_ends_it(app: Mainspring, node: Node, number: int) -> None:
    job = app.command.enqueue(["sh", "-c", "sleep 1000"])
    until(lambda: job.state is JobState.RUNNING)
    job.cancel()
    assert ended(job) is JobState.CANCELLED


@pytest.mark.parametrize("number", range(5))
def test_a_pause_that_comes_while_it_is_launched_stops_it(
    app: Mainspring, node: Node, jobs: Path, place: Path, number: int
) -> None:
    # One that forks nothing: a shell that waits for its child to become another program is in no state to be stopped.
    job = app.command.enqueue([str(jobs / "polite"), str(place)])
    until(lambda: job.state is JobState.RUNNING)
    job.pause()
    until(lambda: job.state is JobState.PAUSED or stands_still(running_with(place)))
    job.cancel()
    assert ended(job) is JobState.CANCELLED


def test_one_whose_launcher_is_killed_counts_as_lost(app: Mainspring, node: Node, place: Path) -> None:
    job = app.command.enqueue(
        ["sh", "-c", f"[ -e {place}/once ] || {{ touch {place}/once; kill -9 $PPID; sleep 1000; }}"]
    )
    job.result(timeout=LONG)
    assert outcomes(job) == ["lost", "succeeded"]


def test_nothing_is_left_of_one_whose_launcher_is_killed(app: Mainspring, node: Node, place: Path) -> None:
    script = """
        pwd >> $0/folders; sleep 1000 & echo $! >> $0/children
        [ -e $0/once ] && exit; touch $0/once; kill -9 $PPID; sleep 1000
    """
    job = app.command.enqueue(["sh", "-c", script, str(place)])
    job.result(timeout=LONG)
    assert outcomes(job) == ["lost", "succeeded"]
    assert [is_dead(int(pid)) for pid in read(place / "children").split()] == [True, True]
    assert running_with(place) == []
    assert [Path(folder).exists() for folder in read(place / "folders").splitlines()] == [False, False]


@pytest.mark.parametrize("name", ["outcome_of", "Output"])
def test_one_of_which_nobody_can_say_what_it_came_to_fails_and_is_not_held_for_ever(
    app: Mainspring, node: Node, place: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(executor, name, fail)
    job = app.command.enqueue(["sh", "-c", "true"])
    assert failure(job) == ("RuntimeError", "a bug")
    monkeypatch.undo()
    app.command.enqueue(["sh", "-c", "true"]).result(timeout=LONG)


def test_one_that_can_not_be_attended_is_killed_and_fails(
    app: Mainspring, node: Node, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(executor.CommandExecutor, "_connect", fail)
    job = app.command.enqueue(["sh", "-c", "sleep 1000; true", str(place)])
    assert failure(job) == ("RuntimeError", "a bug")
    until(lambda: running_with(place) == [])


def test_one_that_the_system_keeps_is_given_up(app: Mainspring, node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainspring.worker.executors.command.DYING", 0.05)
    monkeypatch.setattr("mainspring.worker.executors.command.Command.collect", lambda command: False)
    job = app.command.enqueue(["sh", "-c", "sleep 1000"])
    until(lambda: job.state is JobState.RUNNING)
    job.cancel()
    assert ended(job) is JobState.CANCELLED


# --- how it is paused --------------------------------------------------------------------------------------------


@ON_BOTH
def test_a_paused_command_stands_still_with_all_its_processes_and_goes_on_where_it_was(
    app: Mainspring, node: Node, jobs: Path, place: Path
) -> None:
    job, pids = brood(app, jobs, place)
    job.pause()
    until(lambda: all(state_of(pid).startswith("T") for pid in pids))
    assert job.state is JobState.RUNNING
    job.resume()
    until(lambda: all(state_of(pid).startswith("S") for pid in pids))
    job.cancel()
    assert ended(job) is JobState.CANCELLED
    assert [is_dead(pid) for pid in pids] == [True] * 3


def test_time_stands_still_for_a_paused_command(
    app: Mainspring, node: Node, jobs: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = app.command.enqueue([str(jobs / "count"), str(place / "count"), "100"], timeout="5s", max_attempts=1)
    until(lambda: (place / "count").exists())
    job.pause()
    assert node.worker is not None
    until(lambda: any(held.frozen for held in node.worker.session.holding.all()))  # type: ignore[union-attr]
    (commands,) = [lane.executor for lane in node.worker._lanes if isinstance(lane.executor, executor.CommandExecutor)]
    assert [command.expire_at for command in commands._commands] == [float("inf")]
    job.resume()
    assert job.result(timeout=LONG)["exit_code"] == 0
    assert (place / "count").read_text() == "x" * 100


def test_a_paused_command_gives_its_slot_away_and_can_be_cancelled(app: Mainspring, jobs: Path, place: Path) -> None:
    with app.worker(commands=["sh", str(jobs)], concurrency=1):
        job, pids = brood(app, jobs, place)
        job.pause()
        assert app.command.enqueue(["sh", "-c", "echo me"]).result(timeout=LONG)["output"] == "me\n"
        job.cancel()
        assert ended(job) is JobState.CANCELLED
    assert [is_dead(pid) for pid in pids] == [True] * 3


def test_no_launcher_is_left_behind(app: Mainspring, jobs: Path) -> None:
    with app.worker(commands=["sh"]):
        app.command.enqueue(["sh", "-c", "true"]).result(timeout=LONG)
    assert not [name for name in os.listdir("/proc") if name.isdecimal() and launched_by_us(name)]


def stands_still(pids: list[str]) -> bool:
    return bool(pids) and all(state_of(int(pid)).startswith("T") for pid in pids)


def running_with(argument: Path) -> list[str]:
    """Return the ids of the processes that were started with this argument, and live."""
    found = [name for name in os.listdir("/proc") if name.isdecimal()]
    return [pid for pid in found if str(argument).encode() in words_of(pid) and not is_dead(int(pid))]


def words_of(pid: str) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def launched_by_us(pid: str) -> bool:
    words = words_of(pid)
    return any(word.endswith(b"executors/launch.py") for word in words) and str(os.getpid()).encode() in words


def test_a_command_that_is_refused_does_not_tell_the_secret_that_it_was_called_by(app: Mainspring, node: Node) -> None:
    app.secrets.set("pw", "hunter2-topsecret")

    job = app.command.enqueue(["secret://pw"])

    told = failure(job)
    assert told[0] == "CommandRefused"
    assert "hunter2-topsecret" not in str(app.client.get(job.id))


@pytest.mark.parametrize("code", [0, 3])
def test_no_half_of_a_secret_is_kept_where_what_a_command_says_is_cut(app: Mainspring, node: Node, code: int) -> None:
    app.secrets.set("pw", "Zq7-Xw9_Kj2+Vb8=Yt4")
    script = """head -c 1990 /dev/zero | tr '\\0' x; printf %s "$0"; head -c "$1" /dev/zero | tr '\\0' x; exit "$2" """
    for after in (1_990, 32_750):
        job = app.command.enqueue(["sh", "-c", script, "secret://pw", str(after), str(code)], max_attempts=1)
        assert ended(job).final
        kept = f"{job.refresh()} {[line.message for line in job.logs()]}"
        assert not [part for part in ("Zq7-", "Xw9_", "Kj2+", "Vb8=", "=Yt4") if part in kept]
