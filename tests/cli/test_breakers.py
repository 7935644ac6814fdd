"""`mainspring breakers`."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing

from mainspring import Mainspring
from mainspring.service import person
from tests.cli.databases import migrated
from tests.cli.jobs import Jobs
from tests.cli.program import in_process, mainspring


def test_breakers_are_listed_with_why_they_are_open(url: str, terminal: Callable[[int], None]) -> None:
    terminal(80)
    with closing(Mainspring(migrated(url))) as app:
        app.breakers.trip("smtp", lasting="1h", reason="the server is down", by="ada")
        app.breakers.trip("stripe", lasting="1ms", by="bob")

    done = mainspring("breakers", "--url", url)
    told = json.loads(in_process("breakers", "--url", url, "--json").stdout)

    header, smtp, *_ = done.stdout.splitlines()
    assert header.split() == ["Breaker", "State", "When", "Waiting", "Probes", "Why"]
    assert smtp.split()[:2] == ["smtp", "open"]
    assert "tripped by ada: the" in smtp
    assert max(map(len, done.stdout.splitlines())) <= 80
    first, second = told["breakers"]
    assert (first["key"], first["state"], first["by"], first["reason"]) == ("smtp", "open", "ada", "the server is down")
    assert (second["state"], second["until"], second["waiting"]) == ("half-open", None, 0)


def test_a_database_without_breakers_says_so(sqlite_url: str) -> None:
    done = in_process("breakers", "--url", migrated(sqlite_url))

    assert (done.returncode, done.stdout.startswith("No breaker in ")) == (0, True)


def test_a_breaker_is_tripped_and_reset(jobs: Jobs) -> None:
    tripped = in_process("breakers", "trip", "smtp", "--for", "10m", "--reason", "a deploy")
    again = in_process("breakers", "trip", "smtp", "--by", "ada", "--json")
    reset = in_process("breakers", "reset", "smtp")

    assert tripped.stdout == f"smtp is open for 10m: tripped by {person()}: a deploy\n"
    assert [json.loads(again.stdout)[name] for name in ("state", "by")] == ["open", "ada"]
    assert (reset.returncode, reset.stdout) == (0, "smtp is closed\n")


def test_to_reset_what_is_not_open_is_no_success(jobs: Jobs) -> None:
    in_process("breakers", "trip", "smtp")

    done = in_process("breakers", "reset", "stmp")
    told = in_process("breakers", "reset", "other", "--json")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: breaker 'stmp' was not open, did you mean 'smtp'?\n"
    assert (told.returncode, json.loads(told.stdout)["reset"]) == (1, False)


def test_what_makes_no_sense_is_refused(jobs: Jobs) -> None:
    for wrong in (("trip", "smtp", "--for", "soon"), ("trip", "smtp", "--for", "0"), ("trip", ""), ("reset", "")):
        done = in_process("breakers", *wrong)
        assert (done.returncode, done.stderr.startswith("error: expected ")) == (2, True)
    assert jobs.store.breakers() == []


def test_who_trips_a_breaker_that_nothing_is_known_of_is_warned(jobs: Jobs) -> None:
    first, again = (in_process("breakers", "trip", "smtp") for _ in range(2))
    ghost = in_process("breakers", "trip", "smpt")

    assert (first.returncode, again.returncode, again.stderr) == (0, 0, "")
    assert first.stderr == (
        "warning: under breaker smtp nothing has failed lately; if no task has it, nothing is held back\n"
    )
    assert ghost.stderr.endswith("nothing is held back, did you mean 'smtp'?\n")


def test_a_trip_that_would_not_last_is_refused_in_the_words_that_were_typed(jobs: Jobs) -> None:
    done = in_process("breakers", "trip", "smtp", "--for", "0s")

    assert " ".join(done.stderr.split()) == (
        "error: expected --for to be longer than 0, got: '0s'; to close a breaker, use `mainspring breakers reset`"
    )
