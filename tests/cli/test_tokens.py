"""`mainspring tokens` and `mainspring teams`."""

from __future__ import annotations

import json
import re

import pytest

from mainspring import Mainspring
from mainspring.model.token import Role
from tests.cli.databases import migrated
from tests.cli.program import assert_refused, in_process, mainspring


def test_a_token_is_printed_once_and_lets_in(url: str) -> None:
    done = mainspring("tokens", "create", "ci", "--grant", "acme=submitter", "--expires", "90d", "--url", url)

    text = done.stdout.strip()
    app = Mainspring(url)
    token = app.tokens.verify(text)
    listed, entries = app.tokens.list(), app.audit.list()
    app.close()
    assert done.returncode == 0
    assert re.fullmatch(r"ms_[a-z2-7]{12}_[A-Za-z0-9_-]{43}", text)
    assert token is not None
    assert (token.name, token.grants, [one.id for one in listed]) == ("ci", {"acme": Role.SUBMITTER}, [token.id])
    assert token.expires_at is not None
    assert (token.expires_at - token.created_at).days == 90
    assert text not in done.stderr + repr(entries)
    assert text not in mainspring("tokens", "list", "--url", url).stdout


def test_tokens_are_listed_and_revoked(url: str) -> None:
    made = json.loads(in_process("tokens", "create", "ci", "--grant", "*=admin", "--url", url, "--json").stdout)

    told = in_process("tokens", "revoke", made["id"], "--url", url).stdout
    listed = json.loads(in_process("tokens", "list", "--url", url, "--json").stdout)["tokens"]
    _, row = in_process("tokens", "list", "--url", url).stdout.splitlines()

    assert told == f"{made['id']} (ci) lets nobody in any more\n"
    assert listed[0]["revoked_at"] is not None
    assert "token" not in listed[0]
    assert row.split() == [made["id"], "ci", "*:", "admin", "never", "revoked"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("create", "ci", "--grant", "acme"), "expected --grant to be TEAM=ROLE"),
        (("create", "ci", "--grant", "acme=viewer", "--grant", "acme=admin"), "once for each team"),
        (("create", "ci", "--grant", "acme=veiwer"), "did you mean 'viewer'"),
        (("create", "ci", "--grant", "Acme=viewer"), "expected the name of a team"),
        (("create", "ci", "--grant", "acme=viewer", "--expires", "soon"), "expected --expires"),
        (("create", "ci"), "--grant"),
    ],
)
def test_mistakes_are_named_and_nothing_is_on_record(url: str, arguments: tuple[str, ...], message: str) -> None:
    migrated(url)

    assert_refused(in_process("tokens", *arguments, "--url", url), message)
    assert json.loads(in_process("audit", "list", "--url", url, "--json").stdout)["entries"] == []


def test_a_token_that_is_not_known_is_missing(url: str) -> None:
    done = in_process("tokens", "revoke", "abcdefghijkl", "--url", migrated(url))

    assert done.returncode == 1
    assert "no token has the id 'abcdefghijkl'" in done.stderr


def test_teams_are_told_what_they_may_have(url: str) -> None:
    migrated(url)
    assert "as much as it likes" in in_process("teams", "list", "--url", url).stdout

    arguments = ("--max-pending", "1000", "--rate", "100/s", "--burst", "500")
    told = in_process("teams", "set", "acme", *arguments, "--url", url).stdout
    changed = in_process("teams", "set", "acme", "--rate", "off", "--max-schedules", "5", "--url", url, "--json").stdout
    _, row = in_process("teams", "list", "--url", url).stdout.splitlines()

    assert told == "acme may have 1,000 unfinished jobs; a job every 10ms, 500 together\n"
    assert json.loads(changed) == {
        "name": "acme",
        "max_pending": 1000,
        "max_schedules": 5,
        "rate": None,
        "burst": None,
    }
    assert row.split(maxsplit=1) == ["acme", "1,000 unfinished jobs; 5 schedules"]
    assert in_process("teams", "remove", "acme", "--url", url).returncode == 0
    assert in_process("teams", "remove", "acme", "--url", url).returncode == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("set", "Acme"), "expected the name of a team"),
        (("set", "acme", "--max-pending", "many"), "expected --max-pending to be a whole number"),
        (("set", "acme", "--max-schedules", "9" * 5_000), "expected --max-schedules to be a whole number from 0 to"),
        (("set", "acme", "--rate", "fast"), "expected --rate"),
        (("set", "acme", "--burst", "5"), "expected burst only with a rate"),
    ],
)
def test_what_makes_no_quota_is_refused(url: str, arguments: tuple[str, ...], message: str) -> None:
    assert_refused(in_process("teams", *arguments, "--url", migrated(url)), message)
