"""Tokens of an app: made, shown once, and asked whom they let in."""

from __future__ import annotations

import asyncio
import re

import pytest

from mainspring import Mainspring
from mainspring.errors import InvalidValue, TokenNotFound
from mainspring.model.token import Role, parts_of
from mainspring.service import person
from tests.support.databases import execute, table
from tests.support.schema import tables


def test_the_text_of_a_token_lets_in_and_says_for_which_teams(app: Mainspring) -> None:
    text, token = app.tokens.create("ci", grants={"acme": "submitter", "*": "viewer"}, expires="90d")

    assert re.fullmatch(r"ms_[a-z2-7]{12}_[A-Za-z0-9_-]{43}", text)
    found = app.tokens.verify(text)
    assert found is not None
    assert (found.id, found.name, found.created_by) == (token.id, "ci", person())
    assert [found.role_in(team) for team in ("acme", "beta")] == [Role.SUBMITTER, Role.VIEWER]


def test_a_role_elsewhere_is_none_here(app: Mainspring) -> None:
    _, token = app.tokens.create("ci", grants={"acme": "admin"})

    assert token.role_in("beta") is None
    assert token.role_in("default") is None


@pytest.mark.parametrize("text", ["", " ", "\n", None, 0, b"ms_", "ms__", "ms_abcdefghijkl_", "*", "\0", "é" * 59])
def test_what_is_no_token_lets_nobody_in(app: Mainspring, text: str) -> None:
    app.tokens.create("ci", grants={"*": "admin"})

    assert app.tokens.verify(text) is None


def test_nearly_a_token_lets_nobody_in(app: Mainspring) -> None:
    text, _ = app.tokens.create("ci", grants={"*": "admin"})
    other = "A" if text[-2] != "A" else "B"

    for near in (f"{text}\n", f" {text}", text[:-1], f"{text}A", text.upper(), f"{text[:-2]}{other}{text[-1]}"):
        assert app.tokens.verify(near) is None


def test_nothing_that_is_stored_lets_anybody_in(app: Mainspring, url: str) -> None:
    text, token = app.tokens.create("ci", grants={"*": "admin"})
    app.tokens.verify(text)
    secret = text.removeprefix(f"ms_{token.id}_")

    dump = "\n".join(repr(row) for name in tables(url) for row in execute(url, f"SELECT * FROM {table(url, name)}"))

    assert token.id in dump
    assert secret not in dump
    for word in set(re.findall(r"[A-Za-z0-9_-]{20,}", dump)):
        assert app.tokens.verify(word) is None
        assert app.tokens.verify(f"ms_{token.id}_{word[:43]}") is None


def test_a_revoked_token_is_still_listed(app: Mainspring) -> None:
    text, token = app.tokens.create("ci", grants={"acme": "viewer"})

    revoked = app.tokens.revoke(token.id)

    assert app.tokens.verify(text) is None
    assert revoked.revoked_at is not None
    assert app.tokens.list() == [app.tokens.get(token.id)] == [revoked]


def test_who_pastes_the_whole_token_means_its_id_and_finds_the_secret_nowhere(app: Mainspring) -> None:
    text, token = app.tokens.create("ci", grants={"acme": "viewer"})

    assert app.tokens.revoke(text).id == token.id
    with pytest.raises(TokenNotFound) as caught:
        app.tokens.get(f"{text}x")
    assert text[-10:] not in str(caught.value)


@pytest.mark.parametrize("token_id", ["", "nobody", "abcdefghijkl", "\0", "ms_abcdefghijkl_" + "A" * 43, None])
def test_one_that_is_not_known_is_not_found(app: Mainspring, token_id: str) -> None:
    with pytest.raises(TokenNotFound, match="no token has the id"):
        app.tokens.get(token_id)
    with pytest.raises(TokenNotFound):
        app.tokens.revoke(token_id)


@pytest.mark.parametrize(
    ("name", "grants", "expires"),
    [
        ("", {"acme": "viewer"}, None),
        (" ", {"acme": "viewer"}, None),
        ("a\nb", {"acme": "viewer"}, None),
        ("a" * 101, {"acme": "viewer"}, None),
        (None, {"acme": "viewer"}, None),
        ("ci", {}, None),
        ("ci", ["acme"], None),
        ("ci", {"Acme": "viewer"}, None),
        ("ci", {"acme": "root"}, None),
        ("ci", {"acme": None}, None),
        ("ci", {"acme": "viewer"}, 0),
        ("ci", {"acme": "viewer"}, -1),
        ("ci", {"acme": "viewer"}, "soon"),
    ],
)
def test_what_makes_no_token_is_refused(app: Mainspring, name: str, grants: dict[str, str], expires: str) -> None:
    with pytest.raises(InvalidValue, match="expected"):
        app.tokens.create(name, grants, expires=expires)
    assert app.tokens.list() == []


def test_a_role_is_suggested(app: Mainspring) -> None:
    with pytest.raises(InvalidValue, match="did you mean 'viewer'"):
        app.tokens.create("ci", {"acme": "veiwer"})


def test_within_a_team_there_are_only_tokens_that_are_for_it_alone(app: Mainspring) -> None:
    acme = app.within("acme")
    _, ours = acme.tokens.create("ours", {"acme": "admin"})
    others = [app.tokens.create("x", grants)[1] for grants in ({"*": "admin"}, {"acme": "viewer", "beta": "viewer"})]

    assert acme.tokens.list() == [ours]
    for token in others:
        with pytest.raises(TokenNotFound):
            acme.tokens.revoke(token.id)
    for grants in ({"*": "viewer"}, {"beta": "viewer"}, {"acme": "viewer", "beta": "viewer"}):
        with pytest.raises(InvalidValue, match="for it alone"):
            acme.tokens.create("theirs", grants)
    assert [app.tokens.get(token.id).revoked_at for token in others] == [None, None]


def test_each_call_can_be_awaited(app: Mainspring) -> None:
    async def life() -> None:
        text, token = await app.tokens.acreate("ci", {"acme": "viewer"})
        assert await app.tokens.averify(text) is not None
        assert [one.id for one in await app.tokens.alist()] == [(await app.tokens.aget(token.id)).id]
        assert (await app.tokens.arevoke(token.id)).revoked_at is not None

    asyncio.run(life())


def test_roles_allow_what_those_below_them_may() -> None:
    roles = list(Role)

    assert [[one.allows(other) for other in roles] for one in roles] == [
        [True, False, False, False],
        [True, True, False, False],
        [True, True, True, False],
        [True, True, True, True],
    ]


def test_two_tokens_share_nothing(app: Mainspring) -> None:
    texts = [app.tokens.create("ci", {"acme": "viewer"})[0] for _ in range(5)]

    assert len({parts_of(text) for text in texts}) == len({text[-43:] for text in texts}) == 5
