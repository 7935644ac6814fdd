"""Secrets, as they are kept: one for each team and name, sealed, and changed by whoever comes last."""

from __future__ import annotations

from datetime import timedelta

from mainspring.model.secret import SealedSecret
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock

FIRST, SECOND = "v1.k1.n.first", "v1.k2.n.second"


def put(store: SqlStore, team: str, name: str, sealed: str = FIRST) -> SealedSecret:
    secret = SealedSecret(team, name, sealed)
    store.put_secret(secret, "ada")
    return secret


def names(store: SqlStore, team: str | None = None) -> list[tuple[str, str]]:
    return [(secret.team, secret.name) for secret in store.secrets(team)]


def test_one_that_is_set_again_takes_the_place_of_the_first(store: SqlStore, clock: SettableClock) -> None:
    put(store, "acme", "token")
    began = store.now()
    clock.advance(timedelta(hours=1))
    store.put_secret(SealedSecret("acme", "token", SECOND), "bob")

    (secret,) = store.secrets()
    assert (secret.team, secret.name, secret.key_id, secret.changed_by) == ("acme", "token", "k2", "bob")
    assert (secret.created_at, secret.changed_at) == (began, began + timedelta(hours=1))
    assert store.sealed_secrets([("acme", "token")]) == [SealedSecret("acme", "token", SECOND)]


def test_each_team_has_its_own(store: SqlStore) -> None:
    own, other = put(store, "acme", "token"), put(store, "beta", "token", SECOND)
    put(store, "acme", "another")

    assert names(store) == [("acme", "another"), ("acme", "token"), ("beta", "token")]
    assert names(store, "beta") == [("beta", "token")]
    wanted = [("acme", "token"), ("beta", "token"), ("beta", "another"), ("acme", "no'\"one")]
    assert sorted(store.sealed_secrets(wanted), key=lambda one: one.team) == [own, other]
    assert store.sealed_secrets([]) == []


def test_one_that_is_removed_is_gone_and_others_stay(store: SqlStore) -> None:
    put(store, "acme", "token")
    put(store, "beta", "token")

    assert store.remove_secret("acme", "token")
    assert not store.remove_secret("acme", "token")
    assert names(store) == [("beta", "token")]


def test_those_are_found_that_are_sealed_with_another_key(store: SqlStore) -> None:
    old = put(store, "acme", "old")
    put(store, "acme", "new", SECOND)
    other = put(store, "beta", "old")

    assert store.outdated_secrets("k2") == [old, other]
    assert store.outdated_secrets("k2", "beta") == [other]
    assert store.outdated_secrets("k3", "gamma") == []


def test_one_is_sealed_anew_only_as_it_was(store: SqlStore) -> None:
    before = put(store, "acme", "token")

    store.reseal_secret(before, SECOND)
    assert store.outdated_secrets("k2") == []
    put(store, "acme", "token", "v1.k3.n.set-meanwhile")
    store.reseal_secret(SealedSecret("acme", "token", SECOND), "v1.k4.n.too-late")

    assert store.sealed_secrets([("acme", "token")]) == [SealedSecret("acme", "token", "v1.k3.n.set-meanwhile")]
    (secret,) = store.secrets()
    assert (secret.key_id, secret.changed_by) == ("k3", "ada")
