"""`--team`: what a command sees and changes is one team's."""

from __future__ import annotations

import json
from typing import Any

import pytest
import typer.main
from typer.core import TyperGroup

from mainspring import Mainspring
from mainspring.cli.main import app as program
from mainspring.model.job import JobState
from tests.cli.program import Done, in_process

FLEET = {
    *("up", "worker", "scheduler", "server", "migrate", "doctor", "prune", "settings", "bench"),
    *("limits", "breakers", "tasks", "workers", "teams", "tokens"),
}
"""What is no team's: to run things, what holds for all, and who may do what."""

APART = [("audit", "verify"), ("queues", "give"), ("retention", "list"), ("secrets", "new-key")]
"""Likewise, in groups of which the others are."""


@pytest.fixture(autouse=True)
def app(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> Mainspring:
    monkeypatch.setenv("MAINSPRING_URL", sqlite_url)
    return Mainspring(sqlite_url)


def told(*words: str) -> Any:
    done = in_process(*words, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def leaves(group: TyperGroup, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], set[str]]]:
    found = []
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            found += leaves(command, (*path, name))
        else:
            found.append(((*path, name), {option for one in command.params for option in one.opts}))
    return found


def test_every_command_on_what_is_a_teams_takes_one() -> None:
    whole = typer.main.get_command(program)
    assert isinstance(whole, TyperGroup)
    without = [path for path, options in leaves(whole) if "--team" not in options and path[0] not in FLEET]
    assert sorted(without) == APART


@pytest.mark.parametrize("by", ["option", "environment"])
def test_jobs_of_others_are_neither_seen_nor_changed(app: Mainspring, by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = app.within("acme").enqueue("greet"), app.enqueue("greet")
    team = ("--team", "acme") if by == "option" else ()
    if by == "environment":
        monkeypatch.setenv("MAINSPRING_TEAM", "acme")

    assert [job["id"] for job in told("jobs", "list", *team)["jobs"]] == [str(ours.id)]
    for command in (["jobs", "show"], ["jobs", "logs"], ["jobs", "cancel"], ["jobs", "pause"], ["why"]):
        done = in_process(*command, str(theirs.id), *team)
        assert done.returncode == 1
        assert "no job has the id" in done.stderr
    assert in_process("jobs", "signal", str(theirs.id), "go", *team).returncode == 1
    assert told("jobs", "cancel", "--queue", "default", "--yes", *team) == {"found": 1, "cancelled": 1}
    assert (ours.state, theirs.state) == (JobState.CANCELLED, JobState.READY)
    assert told("jobs", "show", str(ours.id), *team)["id"] == str(ours.id)


def test_a_team_enqueues_and_finds_by_names_of_its_own(app: Mainspring) -> None:
    job = told("enqueue", "greet", "--key", "k", "--team", "acme")

    assert app.job(job["id"]).snapshot.team == "acme"
    (found,) = told("jobs", "list", "--key", "k", "--team", "acme")["jobs"]
    assert (found["id"], found["key"]) == (job["id"], "k")
    assert told("jobs", "list", "--key", "k")["jobs"] == []


def test_whose_jobs_are_is_shown_where_they_are_not_all_the_same_ones(app: Mainspring) -> None:
    app.enqueue("greet")
    assert "Team" not in table(in_process("jobs", "list"))[0]
    job = app.within("acme").enqueue("greet")

    head, first, second = table(in_process("jobs", "list"))
    assert (head[1], first[1], second[1]) == ("Team", "acme", "default")
    assert "Team" not in table(in_process("jobs", "list", "--team", "acme"))[0]
    assert ["Team", "acme"] in table(in_process("jobs", "show", str(job.id)))


def test_workflows_of_others_are_neither_seen_nor_changed(app: Mainspring) -> None:
    made = {}
    for name, one in (("acme", app.within("acme")), ("default", app)):
        with one.workflow("two") as wf:
            wf.add("greet")
        made[name] = str(wf.enqueue().id)

    team = ("--team", "acme")
    assert [one["id"] for one in told("workflows", "list", *team)["workflows"]] == [made["acme"]]
    assert in_process("workflows", "show", made["default"], *team).returncode == 1
    assert in_process("workflows", "cancel", made["default"], *team).returncode == 1
    assert told("workflows", "cancel", made["acme"], *team)["workflows"][0]["state"] == "cancelled"


def test_schedules_of_a_team_are_called_by_their_ids_alone(app: Mainspring) -> None:
    team = ("--team", "acme")
    assert told("schedules", "add", "s", "greet", "--every", "1h", *team)["id"] == "s"
    assert [one["id"] for one in told("schedules", "list", *team)["schedules"]] == ["s"]
    assert told("schedules", "list", "--team", "beta")["schedules"] == []
    for verb in ("pause", "resume"):
        assert in_process("schedules", verb, "s", *team).returncode == 0
    for verb in ("show", "preview", "history"):
        assert in_process("schedules", verb, "s", *team).returncode == 0
        assert in_process("schedules", verb, "s").returncode == 1
    assert app.job(told("schedules", "trigger", "s", *team)["id"]).snapshot.team == "acme"
    assert in_process("schedules", "lint", *team).returncode == 0
    assert told("schedules", "remove", "s", "--yes", *team)["removed"] == ["s"]


def test_queues_count_a_teams_jobs_and_are_ruled_by_whose_they_are(app: Mainspring) -> None:
    app.enqueue("greet")
    app.within("acme").enqueue("greet")

    (queue,) = told("queues", "--team", "acme")["queues"]
    assert queue["jobs"]["ready"] == 1
    refused = in_process("queues", "pause", "default", "--team", "acme")
    assert refused.returncode == 2
    assert "team 'acme' can't" in refused.stderr


def test_dead_letters_of_others_stay(app: Mainspring) -> None:
    ours, theirs = (one.http.enqueue("http://127.0.0.1/") for one in (app.within("acme"), app))
    with app.worker():
        for job in (ours, theirs):
            with pytest.raises(Exception, match="not public"):
                job.result(timeout="60s")

    team = ("--team", "acme")
    assert [job["id"] for job in told("dead", "list", *team)["jobs"]] == [str(ours.id)]
    assert told("dead", "groups", *team)["groups"][0]["count"] == 1
    assert in_process("dead", "discard", "--id", str(theirs.id), *team).returncode == 1
    assert told("dead", "discard", "--task", "mainspring.http", "--yes", *team) == {"found": 1, "discarded": 1}
    assert (ours.state, theirs.state) == (JobState.CANCELLED, JobState.FAILED)


def table(done: Done) -> list[list[str]]:
    assert (done.returncode, done.stderr) == (0, "")
    return [line.split() for line in done.stdout.splitlines()]
