"""`mainspring alerts`."""

from __future__ import annotations

import json

import pytest

from mainspring import Email, Webhook
from mainspring.store import open_store
from tests.cli.databases import migrated
from tests.cli.jobs import Jobs
from tests.cli.program import in_process, mainspring
from tests.support.factories import FAILURE, end, new_job


def test_an_alert_is_added_shown_and_removed(url: str) -> None:
    migrated(url)

    added = mainspring("alerts", "add", "letters", "dead", "--above", "0", "--over", "2h", "--url", url)
    shown = in_process("alerts", "show", "letters", "--url", url)
    removed = in_process("alerts", "remove", "letters", "--url", url)
    gone = in_process("alerts", "show", "letters", "--url", url)

    assert (added.returncode, added.stdout) == (0, "letters: dead(above=0, over=2h), looked at every 30s\n")
    assert "dead(above=0, over=2h)" in shown.stdout
    assert "nobody; what it finds is logged" in shown.stdout
    assert (removed.returncode, removed.stdout) == (0, "letters removed\n")
    assert (gone.returncode, gone.stderr) == (1, "error: no alert has the id 'letters'\n")


def test_what_fires_is_listed_first_with_what_was_found(jobs: Jobs) -> None:
    job = new_job()
    jobs.store.enqueue([job])
    end(jobs.store, job, FAILURE)
    in_process("alerts", "add", "calm", "depth", "--queue", "mail", "--above", "1000")
    in_process("alerts", "add", "late", "stuck", "--longer-than", "30m", "--task", "greet")
    jobs.store.alert("n")

    listed = in_process("alerts", "list").stdout.splitlines()
    told = json.loads(in_process("alerts", "list", "--json").stdout)["alerts"]

    assert listed[0].split() == ["Alert", "State", "Found"]
    assert listed[1].startswith("mainspring.dead")
    assert "firing for" in listed[1]
    assert "at least 1 job failed for good within 1h" in listed[1]
    assert [one["state"] for one in told] == ["firing", *["ok"] * 4]
    assert {one["id"]: one["rule"] for one in told}["late"] == {
        "text": "stuck(longer_than=30m, task=greet)",
        "kind": "stuck",
        "longer_than": "30m",
        "queue": None,
        "task": "greet",
    }


def test_channels_are_counted_and_their_secrets_not_shown(jobs: Jobs) -> None:
    channel = '{"kind":"webhook","url":"https://example.org","secret":"hunter2"}'
    added = in_process("alerts", "add", "a", "dead", "--notify", channel, "--hold", "1m", "--every", "10s", "--json")
    shown = in_process("alerts", "show", "a")

    assert json.loads(added.stdout)["channels"] == 1
    assert "hunter2" not in added.stdout + shown.stdout
    assert jobs.store.alerts("a")[0].definition.notify[0] == Webhook("https://example.org", secret="hunter2")


@pytest.mark.parametrize("to", ['"ops@example.org"', '["ops@example.org"]'])
def test_one_address_needs_no_list(jobs: Jobs, to: str) -> None:
    done = in_process("alerts", "add", "a", "dead", "--notify", f'{{"kind": "email", "to": {to}}}')

    assert (done.returncode, done.stderr) == (0, "")
    assert jobs.store.alerts("a")[0].definition.notify == (Email("ops@example.org"),)


def test_an_alert_of_a_team_is_seen_by_that_team(sqlite_url: str) -> None:
    url = migrated(sqlite_url)
    in_process("alerts", "add", "a", "dead", "--team", "acme", "--url", url)

    with_team = in_process("alerts", "show", "a", "--team", "acme", "--url", url)
    other = in_process("alerts", "show", "a", "--team", "other", "--url", url)
    store = open_store(url)

    assert "jobs of team acme" in with_team.stdout
    assert other.returncode == 1
    assert [one.id for one in store.alerts(scope="acme")] == ["@acme/a"]
    store.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ded"], "expected RULE to be one of stuck, lag, depth, age, error_rate, dead, missing_workers, "),
        (["depth"], "expected --queue with the rule depth, got none"),
        (["lag", "--over", "3s"], "expected --above with the rule lag, got: --over"),
        (["lag", "--above", "soon"], "expected --above to be a duration such as '90s'"),
        (["dead", "--above", "many"], "expected --above to be a whole number up to 999,999,999, got: 'many'"),
        (["dead", "--above", "9" * 5_000], "expected --above to be a whole number up to 999,999,999, got: '999"),
        (["error_rate", "--above", "200%"], "expected --above to be a share such as 0.2 or 20%"),
        (["dead", "--every", "0"], "expected every to be at least 1 s"),
        (["dead", "--notify", "me"], "expected a channel such as a webhook"),
    ],
)
def test_what_makes_no_sense_is_said_in_one_sentence(jobs: Jobs, arguments: list[str], message: str) -> None:
    done = in_process("alerts", "add", "a", *arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_without_a_command_they_are_listed(jobs: Jobs) -> None:
    assert in_process("alerts").stdout == in_process("alerts", "list").stdout
