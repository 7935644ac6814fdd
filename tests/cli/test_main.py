"""The program as a whole: its version, its help, and what becomes of errors and interruptions."""

from __future__ import annotations

import os
import pty
import re
import signal
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import mainspring as package
from tests.cli.databases import migrated
from tests.cli.program import assert_refused, in_process, mainspring, python


def test_the_version_is_that_of_the_package() -> None:
    done = mainspring("--version")

    assert (done.returncode, done.stdout, done.stderr) == (0, f"mainspring {package.__version__}\n", "")


def test_the_console_script_is_the_same_program() -> None:
    script = Path(sys.executable).parent / "mainspring"

    done = subprocess.run([script, "--version"], capture_output=True, text=True)

    assert (done.returncode, done.stdout) == (0, f"mainspring {package.__version__}\n")


def test_help_names_the_commands_and_fits_a_terminal_of_80_columns() -> None:
    done = mainspring("--help")

    named = re.findall(r"^│ (\w+) ", done.stdout, re.MULTILINE)
    assert done.returncode == 0
    assert named == [
        *("up", "worker", "scheduler", "server"),
        *(
            "top",
            "enqueue",
            "jobs",
            "why",
            "workflows",
            "dead",
            "schedules",
            "queues",
            "limits",
            "breakers",
            "alerts",
            "notifications",
            "secrets",
            "tasks",
            "workers",
        ),
        *("teams", "tokens", "audit"),
        *("retention", "prune", "migrate", "doctor"),
        *("settings", "bench"),
    ]
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["worker"], ["--app", "--queues", "--processes", "--lease", "--grace", "--reload", "MAINSPRING_GRACE"]),
        (["worker"], ["--concurrency", "threads", "1,000", "coroutines", "cores", "MAINSPRING_RETENTION", "prune"]),
        (["up"], ["--app", "--reload", "--retention", "MAINSPRING_APP"]),
        (["scheduler"], ["--url", "MAINSPRING_URL", "--retention", "prune"]),
        (["enqueue"], ["TASK", "--kwargs", "--run-after", "--run-at", "--key"]),
        (["workers"], ["--json"]),
        (["jobs"], ["list", "show", "logs", "cancel", "pause", "resume", "replay"]),
        (["jobs", "list"], ["--state", "--before", "--json"]),
        (["jobs", "show"], ["ID", "--json"]),
        (["dead"], ["groups", "list", "replay", "discard"]),
        (["dead", "replay"], ["GROUP", "--id", "--canary", "--rate", "--stop-at", "--set", "--reason", "--yes"]),
        (["jobs", "replay"], ["ID", "--state", "--reason", "--yes"]),
    ],
)
def test_the_help_of_a_command_names_its_options_and_fits_80_columns(command: list[str], words: list[str]) -> None:
    done = in_process(*command, "--help")

    assert done.returncode == 0
    assert [word for word in words if word not in done.stdout] == []
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    "group",
    [
        *("alerts", "audit", "jobs", "notifications", "retention", "schedules", "secrets", "teams", "tokens"),
        *("workflows", "dead"),
    ],
)
def test_a_group_without_a_command_lists_what_there_is(group: str, sqlite_url: str) -> None:
    url = migrated(sqlite_url)
    for more in ((), ("--json",)):
        bare = in_process(group, "--url", url, *more)
        listed = in_process(group, "groups" if group == "dead" else "list", "--url", url, *more)
        assert (bare.returncode, bare.stdout) == (0, listed.stdout)
    assert_refused(in_process(group, "--json", "list", "--url", url), "write the options after the command")


@pytest.mark.parametrize(
    "command", [["up", "--app", "tasks:app"], ["worker", "--app", "tasks:app"], ["server"], ["scheduler"]]
)
def test_a_form_of_logging_that_is_none_is_refused(command: list[str]) -> None:
    done = in_process(*command, "--log-format", "xml")
    assert_refused(done, "expected --log-format to be one of text, json, got: 'xml'")


@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("mainspring wo", ["worker", "workflows", "workers"]),
        ("mainspring jobs re", ["resume", "replay"]),
        ("mainspring jobs list --state fa", ["failed"]),
        ("mainspring worker --log-level w", ["warning"]),
    ],
)
def test_a_shell_can_complete_commands_and_values(
    line: str, completed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_MAINSPRING_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split()) - 1))

    assert sorted(mainspring().stdout.split()) == sorted(completed)


def test_without_a_command_the_help_is_shown_and_the_exit_code_tells() -> None:
    done = in_process()

    assert done.returncode == 2
    assert "migrate" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["migrat"], ["'migrat'", "did you mean 'migrate'?"]),
        (["xyz"], ["'xyz'", "`mainspring --help`"]),
        (["doctor", "--jsn"], ["--jsn", "--json"]),
        (["doctor", "now"], ["now"]),
        (["doctor", "--url"], ["--url"]),
        (["--verbose"], ["--verbose"]),
    ],
)
def test_a_mistyped_command_or_option_is_refused_in_one_sentence(arguments: list[str], words: list[str]) -> None:
    assert_refused(mainspring(*arguments), *words)


def test_the_address_can_come_from_the_environment(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSPRING_URL", sqlite_url)

    assert in_process("migrate").returncode == 0
    assert Path(sqlite_url.removeprefix("sqlite:///")).exists()


def test_an_address_that_is_given_wins_over_the_environment(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSPRING_URL", "nonsense")

    assert in_process("migrate", "--url", sqlite_url).returncode == 0


def test_without_an_address_the_database_is_a_file_in_the_present_folder(tmp_path: Path) -> None:
    done = mainspring("migrate", folder=tmp_path)

    assert done.returncode == 0
    assert (tmp_path / "mainspring.db").exists()


def test_an_interruption_ends_the_program_quietly() -> None:
    # A shell that runs the tests in the background has its children ignore the signal.
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from mainspring.cli.main import run; run()"
    )
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://user@127.0.0.1:{silent.getsockname()[1]}/name"
        process = subprocess.Popen(
            [sys.executable, "-c", program, "doctor", "--url", url],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        silent.settimeout(30)
        with closing(silent.accept()[0]):
            process.send_signal(signal.SIGINT)
            output = process.communicate(timeout=30)

    assert (process.returncode, output) == (130, (b"", b""))


@pytest.mark.parametrize("options", [["--version"], ["doctor"], ["doctor", "--json"]])
def test_output_that_finds_no_room_is_refused_in_one_sentence(options: list[str], tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "mainspring", *options], stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path
        )

    assert done.returncode == 2
    assert done.stderr == "error: can't write the output: No space left on device; send it elsewhere\n"


@pytest.mark.parametrize("arguments", ["doctor", "--help", "jobs --help", "--version", "migrate", "settings --json"])
def test_a_reader_that_has_seen_enough_is_no_mistake(arguments: str, sqlite_url: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)

    done = subprocess.run(
        [sys.executable, "-m", "mainspring", *arguments.split()],
        stdout=writer,
        stderr=subprocess.PIPE,
        env={**os.environ, "MAINSPRING_URL": sqlite_url},
    )
    os.close(writer)

    assert (done.returncode, done.stderr) == (141, b"")


def test_a_bug_shows_its_traceback_but_no_password() -> None:
    program = (
        "import mainspring.cli.migrate as command\n"
        "def broken(url, prepared): raise RuntimeError('a bug')\n"
        "command.open_store = broken\n"
        "from mainspring.cli.main import run; run()\n"
    )

    done = python("-c", program, "migrate", "--url", "postgresql://user:hunter2@host/name")

    assert done.returncode == 1
    assert "Traceback (most recent call last)" in done.stderr
    assert done.stderr.endswith("RuntimeError: a bug\n")
    assert "hunter2" not in done.stderr


def test_colours_are_for_terminals_only(sqlite_url: str) -> None:
    migrated(sqlite_url)
    terminal, end = pty.openpty()
    doctor = [sys.executable, "-m", "mainspring", "doctor", "--url", sqlite_url]

    subprocess.run(doctor, stdout=end, env=os.environ | {"TERM": "xterm-256color"}, timeout=60, check=True)
    os.close(end)
    seen = os.read(terminal, 65536)
    os.close(terminal)

    assert b"\x1b[" in seen
    assert "\x1b" not in mainspring(*doctor[3:]).stdout


def test_a_terminal_that_knows_only_ascii_gets_words_for_signs(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrated(sqlite_url)
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")

    done = mainspring("doctor", "--url", sqlite_url)

    assert done.returncode == 0
    assert done.stdout.startswith("ok ")


def test_a_file_name_that_the_terminal_can_not_write_is_shown_in_escapes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")

    done = mainspring("doctor", "--url", f"sqlite:///{tmp_path}/jöbs.db")

    assert done.returncode == 0
    assert "bs.db" in "".join(done.stdout.split())
