"""`mainspring notifications`."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mainspring import Mainspring, Webhook
from mainspring.cli.main import app as cli
from mainspring.notify import verify
from tests.cli.databases import migrated
from tests.cli.program import assert_refused, in_process, mainspring
from tests.notify.test_webhook import parts
from tests.support.mailbox import mail_server
from tests.support.receiver import answering, receiving


def test_notifications_are_added_listed_and_removed(url: str) -> None:
    at = ("--url", migrated(url))
    added = mainspring("notifications", "add", "ops", "--email", "ops@example.org", "--on", "failure", *at)
    hook = ("--webhook", "https://hooks.example.org/canary", "--secret", "canary", "--team", "acme")
    told = json.loads(in_process("notifications", "add", "hook", *hook, "--json", *at).stdout)

    listed = in_process("notifications", "list", *at)
    of_acme = json.loads(in_process("notifications", "list", "--team", "acme", "--json", *at).stdout)

    assert added.stdout == "ops: team default tells ops@example.org on failure\n"
    assert of_acme["notifications"] == [told]
    assert (told["kind"], told["place"], told["secrets"]) == ("webhook", "https://hooks.example.org", 1)
    assert [line.split() for line in listed.stdout.splitlines()] == [
        ["Team", "Id", "Tells", "On", "Signed"],
        ["acme", "hook", "https://hooks.example.org", "failure,", "recovered", "yes"],
        ["default", "ops", "ops@example.org", "failure"],
    ]
    assert "canary" not in listed.stdout + json.dumps(of_acme)

    assert in_process("notifications", "remove", "ops", *at).stdout == "ops removed\n"
    gone = in_process("notifications", "remove", "ops", *at)
    assert (gone.returncode, gone.stderr) == (1, "error: no notification has the id 'ops'\n")
    assert json.loads(in_process("notifications", "remove", "hook", "--team", "acme", "--json", *at).stdout) == {
        "removed": "hook"
    }
    assert "No team in" in in_process("notifications", "list", *at).stdout


def test_an_address_that_is_a_secret_is_read_from_a_file_or_from_stdin(sqlite_url: str, folder: Path) -> None:
    at = ("--url", migrated(sqlite_url))
    (folder / "hook.txt").write_text("https://hooks.example.org/canary\n")
    (folder / "odd.txt").write_bytes(b"\xff")

    by_file = in_process("notifications", "add", "a", "--webhook", "@hook.txt", *at)
    hook = {"kind": "webhook", "url": "https://chat.example.org/canary"}
    alert = ["alerts", "add", "b", "dead", "--notify", "-", *at]
    by_stdin = CliRunner().invoke(cli, alert, input=json.dumps(hook), catch_exceptions=False)

    assert (by_file.returncode, by_stdin.exit_code) == (0, 0)
    with closing(Mainspring(sqlite_url)) as app:
        assert app.notifications.list()[0].channel == Webhook("https://hooks.example.org/canary")
        assert app.alerts.get("b").definition.notify == (Webhook("https://chat.example.org/canary"),)
    for name, why in (("nowhere.txt", "No such file"), ("odd.txt", "it is no text")):
        assert_refused(in_process("notifications", "add", "a", "--webhook", f"@{name}", *at), "--webhook", name, why)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ([], "expected --email or --webhook, got neither"),
        (["--email", "a@b.c", "--webhook", "https://a.b"], "expected --email or --webhook, got both"),
        (["--email", "nobody"], "expected the address of a mail"),
        (["--webhook", "ftp://a.b"], "expected the url of a webhook"),
        (["--email", "a@b.c", "--on", "sucess"], "did you mean 'success'?"),
        (["--email", "a@b.c", "--team", "A Team"], "expected the name of a team"),
    ],
)
def test_what_makes_no_sense_is_refused(sqlite_url: str, options: list[str], problem: str) -> None:
    done = in_process("notifications", "add", "ops", *options, "--url", migrated(sqlite_url))

    assert done.returncode == 2
    assert problem in done.stderr


def test_a_test_is_sent_at_once_and_what_came_of_it_is_told(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSPRING_OUTBOUND_ALLOW", "127.0.0.1")
    at = ("--url", migrated(sqlite_url))
    with receiving() as receiver:
        in_process("notifications", "add", "hook", "--webhook", receiver.url, "--secret", "s", *at)

        done = in_process("notifications", "test", "hook", *at)

    _, headers, body = parts(receiver.requests[0])
    assert (done.returncode, json.loads(body)["event"]) == (0, "test")
    assert verify("s", headers, body)
    assert done.stdout.startswith(f"{receiver.url} has taken it, status 200")


@pytest.mark.parametrize("status", ["503 Later", "404 Not"])
def test_a_test_that_does_not_arrive_says_why(sqlite_url: str, monkeypatch: pytest.MonkeyPatch, status: str) -> None:
    monkeypatch.setenv("MAINSPRING_OUTBOUND_ALLOW", "127.0.0.1")
    at = ("--url", migrated(sqlite_url))
    with receiving(answering(status, "Retry-After: 9\r\n")) as receiver:
        in_process("notifications", "add", "hook", "--webhook", receiver.url, *at)

        done = in_process("notifications", "test", "hook", *at)
        told = json.loads(in_process("notifications", "test", "hook", "--json", *at).stdout)

    assert (done.returncode, done.stderr) == (1, f"error: {receiver.url} answered {status[:3]}\n")
    assert (told["delivered"], told["to"]) == (False, receiver.url)


def test_a_test_by_mail_goes_by_the_operators_server(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = Mainspring(migrated(sqlite_url))
    with mail_server() as mailbox:
        monkeypatch.setenv("MAINSPRING_SMTP", mailbox.url)
        monkeypatch.setenv("MAINSPRING_MAIL_FROM", "jobs@example.org")
        in_process("notifications", "add", "ops", "--email", "ops@example.org", "--url", sqlite_url)

        done = in_process("notifications", "test", "ops", "--url", sqlite_url)
    app.close()

    assert done.stdout == "ops@example.org has taken it\n"
    assert mailbox.mails[0]["Subject"] == "[default] a test of notification ops"
