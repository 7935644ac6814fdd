"""Tokens: whom they let in, and for how long; and that nothing which is stored would let anybody in."""

from __future__ import annotations

import hmac
from datetime import timedelta
from unittest.mock import patch

from mainspring.model.token import NewToken, Role, Token
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock

DIGEST, OTHER = "a" * 64, "b" * 64


def made(store: SqlStore, token_id: str = "abcdefghijkl", lasting: timedelta | None = None) -> Token:
    new = NewToken(id=token_id, digest=DIGEST, name="ci", grants={"acme": Role.SUBMITTER}, created_by="ada@desk")
    return store.create_token(new, lasting)


def test_a_token_is_kept_as_it_was_made(store: SqlStore, clock: SettableClock) -> None:
    token = made(store, lasting=timedelta(days=90))

    assert token == Token(
        id="abcdefghijkl",
        name="ci",
        grants={"acme": Role.SUBMITTER},
        created_at=clock.now(),
        created_by="ada@desk",
        expires_at=clock.now() + timedelta(days=90),
        revoked_at=None,
        last_used_at=None,
    )
    assert store.get_token(token.id) == token
    assert store.tokens() == [token]


def test_to_make_it_again_after_a_lost_reply_finds_it(store: SqlStore) -> None:
    assert made(store) == made(store)
    assert len(store.tokens()) == 1


def test_only_its_own_secret_lets_in(store: SqlStore) -> None:
    token = made(store)

    assert store.verify_token(token.id, OTHER) is None
    assert store.verify_token("lkjihgfedcba", DIGEST) is None
    assert store.verify_token("lkjihgfedcba", "0" * 64) is None
    assert store.get_token("lkjihgfedcba") is None
    found = store.verify_token(token.id, DIGEST)
    assert found is not None
    assert found.id == token.id


def test_one_that_is_not_known_takes_the_same_steps_as_one_whose_secret_is_another(store: SqlStore) -> None:
    token = made(store)

    with (
        patch.object(hmac, "compare_digest", wraps=hmac.compare_digest) as compare,
        patch.object(store._db, "read", wraps=store._db.read) as read,
    ):
        for token_id in (token.id, "lkjihgfedcba"):
            assert store.verify_token(token_id, OTHER) is None

    assert [[len(digest) for digest in call.args] for call in compare.call_args_list] == [[64, 64]] * 2
    assert [call.args for call in read.call_args_list] == [("look_at_token",)] * 2


def test_an_expired_one_lets_nobody_in_by_the_databases_clock(store: SqlStore, clock: SettableClock) -> None:
    token = made(store, lasting=timedelta(hours=1))

    clock.advance(timedelta(hours=1) - timedelta(microseconds=1))
    assert store.verify_token(token.id, DIGEST) is not None
    clock.advance(timedelta(microseconds=1))
    assert store.verify_token(token.id, DIGEST) is None


def test_a_revoked_one_lets_nobody_in_and_is_not_forgotten(store: SqlStore, clock: SettableClock) -> None:
    token = made(store)
    revoked_at = clock.now()

    revoked = store.revoke_token(token.id)
    clock.advance(timedelta(hours=1))
    again = store.revoke_token(token.id)

    assert store.verify_token(token.id, DIGEST) is None
    assert revoked == again
    assert revoked is not None
    assert revoked.revoked_at == revoked_at
    assert store.revoke_token("lkjihgfedcba") is None


def test_its_use_is_noted_once_a_minute(store: SqlStore, clock: SettableClock) -> None:
    token = made(store)

    def used() -> object:
        store.verify_token(token.id, DIGEST)
        found = store.get_token(token.id)
        assert found is not None
        return found.last_used_at

    with patch.object(store._db, "run", wraps=store._db.run) as run:
        first = clock.now()
        assert used() == first
        clock.advance(timedelta(seconds=60))
        assert used() == first
        clock.advance(timedelta(seconds=1))
        assert used() == clock.now()
        clock.jump(clock.now() - timedelta(hours=1))  # what was noted lies ahead, and must not stay there for an hour
        assert used() == clock.now()

    assert [call.args for call in run.call_args_list] == [("use_token",)] * 3


def test_a_wrong_secret_is_no_use_of_it(store: SqlStore) -> None:
    token = made(store)

    store.verify_token(token.id, OTHER)

    found = store.get_token(token.id)
    assert found is not None
    assert found.last_used_at is None
