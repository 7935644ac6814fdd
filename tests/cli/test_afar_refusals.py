"""What a server does not do, or not for everybody, is said in one sentence with the way out."""

from __future__ import annotations

from uuid import uuid4

import pytest

from mainspring import Mainspring
from mainspring.server import Server
from tests.api.conftest import app, server
from tests.cli.program import assert_refused, in_process
from tests.support.receiver import answering, receiving

__all__ = ["app", "server"]


@pytest.fixture
def token(app: Mainspring, monkeypatch: pytest.MonkeyPatch) -> str:
    """A token for everything, which commands show."""
    text, _ = app.tokens.create("me", {"*": "admin"})
    monkeypatch.setenv("MAINSPRING_TOKEN", text)
    return text


@pytest.mark.parametrize(
    "command",
    [
        "prune --dry-run",
        "audit verify",
        "secrets rotate",
        "migrate",
        "doctor",
        "scheduler",
        "server",
        "worker --allow-command true",
        "up",
    ],
)
def test_what_needs_the_database_says_so(server: Server, command: str) -> None:
    done = in_process(*command.split(), "--url", server.url)

    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("error: expected a database address")
    assert "this needs the database itself: name it by --url or MAINSPRING_URL\n" in done.stderr


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("secrets set ../x", "expected the name of a secret to be 1 to 128 ASCII letters"),
        ("secrets remove ../secrets/pw", "expected the name of a secret to be 1 to 128 ASCII letters"),
        ("retention set --state running --age 1d", "expected state to be one in which a job has ended"),
        ("alerts remove ..", "alert_id: expected 1 to 128 ASCII letters"),
    ],
)
def test_what_is_wrong_with_a_name_is_told_without_the_places_of_requests(
    server: Server, token: str, command: str, sentence: str
) -> None:
    done = in_process(*command.split(), "--url", server.url)

    assert (done.returncode, done.stderr.startswith(f"error: {sentence}")) == (2, True), done.stderr


def test_a_token_is_needed(server: Server, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MAINSPRING_TOKEN")
    assert_refused(in_process("jobs", "list", "--url", server.url), "expected a token", "set MAINSPRING_TOKEN to one")

    monkeypatch.setenv("MAINSPRING_TOKEN", "ms_wrong")
    assert_refused(in_process("queues", "--url", server.url), "is known", "set MAINSPRING_TOKEN to another")

    monkeypatch.setenv("MAINSPRING_TOKEN", "two words")
    assert_refused(in_process("queues", "--url", server.url), "expected a token such as 'ms_…'")


def test_a_role_is_needed(app: Mainspring, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSPRING_TOKEN", app.tokens.create("me", {"acme": "viewer"})[0])

    refused = in_process("schedules", "add", "s", "greet", "--every", "1h", "--url", server.url)
    assert_refused(refused, "expected the role operator in the team, got: viewer", "a token that grants it")
    assert in_process("jobs", "list", "--team", "other", "--url", server.url).returncode == 1

    named = in_process("secrets", "list", "--team", "acme", "--url", server.url)
    assert_refused(named, "a token that grants it, or name another --team")
    for command in ("limits", "breakers", "tasks resume greet"):  # which know no --team
        done = in_process(*command.split(), "--url", server.url)
        assert_refused(done, "a token that grants it")
        assert "--team" not in done.stderr


def test_what_is_not_there_is_not_found(server: Server, token: str) -> None:
    done = in_process("jobs", "show", str(uuid4()), "--url", server.url)

    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "no job has the id" in done.stderr


def test_what_is_wrong_with_a_call_is_told(server: Server, token: str) -> None:
    assert_refused(in_process("enqueue", "greet", "--url", server.url), "task 'greet' can't be called like that")
    assert_refused(in_process("enqueue", "gret", "Ada", "--url", server.url), "no task is named 'gret'", "'greet'")
    assert_refused(in_process("queues", "pause", "q", "--by", "me", "--url", server.url), "expected no --by")


def test_nobody_answers() -> None:
    with receiving() as gone:
        url = gone.url
    assert_refused(in_process("jobs", "list", "--url", url), "can't be reached", url, "--url")


def test_somebody_else_answers() -> None:
    with receiving(answering(body=b"<html>")) as other:
        assert_refused(in_process("jobs", "list", "--url", other.url), "Mainspring server", "look at the address")
    with receiving(answering("404 Not Found", body=b"<html>")) as other:
        assert_refused(in_process("jobs", "list", "--url", other.url), "the server answered 404")


@pytest.mark.parametrize("address", ["http://", "https:///jobs"])
def test_an_address_that_is_none(address: str) -> None:
    assert_refused(in_process("jobs", "list", "--url", address), "expected the address of a server")
