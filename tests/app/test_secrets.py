"""Secrets of an app: what can be said and seen of them, and where it is refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mainspring import Context, Mainspring, every
from mainspring.errors import InvalidPayload, InvalidValue, KeyMissing, SealBroken, SecretNotFound
from mainspring.keys import new_key
from mainspring.store.open import keyring
from mainspring.testing import drain, isolated
from tests.support.databases import dump, execute, table


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    key = new_key()
    monkeypatch.setenv("MAINSPRING_KEYS", key)
    return key


def names(app: Mainspring) -> list[tuple[str, str]]:
    return [(secret.team, secret.name) for secret in app.secrets.list()]


def test_nothing_that_is_public_gives_a_value_back(app: Mainspring, url: str) -> None:
    app.secrets.set("token", "canary-4711")

    assert "canary" not in repr(app.secrets.list()) + repr(vars(app.secrets))
    assert "canary" not in dump(url)


def test_a_team_sees_and_changes_its_own_only(app: Mainspring) -> None:
    acme, beta = app.within("acme"), app.within("beta")
    acme.secrets.set("token", "of acme")
    app.secrets.set("token", "of the default team")

    assert names(beta) == []
    assert names(acme) == [("acme", "token")]
    assert names(app) == [("acme", "token"), ("default", "token")]
    with pytest.raises(SecretNotFound, match="'token'; set it with `mainspring secrets set token --team beta`"):
        beta.secrets.remove("token")
    app.secrets.remove("token")
    assert names(app) == [("acme", "token")]


def test_a_secret_that_was_given_to_another_team_can_not_be_opened(app: Mainspring, url: str) -> None:
    app.within("acme").secrets.set("token", "of acme")
    execute(url, f"UPDATE {table(url, 'secrets')} SET team = 'default'")

    @app.task
    def take(token: str) -> None: ...

    job = take.enqueue("secret://token")
    drain(app)

    failure = job.refresh().failure
    assert failure is not None
    assert "secret 'token' of team 'default' can't be opened" in failure.message


def test_after_a_rotation_the_old_key_can_go(app: Mainspring, url: str, key: str, monkeypatch: Any) -> None:
    app.secrets.set("a", "value of a")
    app.within("acme").secrets.set("b", "value of b")
    newer = new_key()
    monkeypatch.setenv("MAINSPRING_KEYS", f"{newer},{key}")
    rotating = Mainspring(url)

    assert rotating.within("acme").secrets.rotate() == 1
    assert rotating.secrets.rotate() == 1
    assert rotating.secrets.rotate() == 0
    monkeypatch.setenv("MAINSPRING_KEYS", newer)
    after = Mainspring(url)
    assert {secret.key_id for secret in after.secrets.list()} == {newer.partition(":")[0]}

    @after.task
    def take(token: str) -> int:
        return len(token)

    job = take.enqueue("secret://a")
    drain(after)
    assert job.result() == len("value of a")
    rotating.close()
    after.close()


def test_a_rotation_does_what_it_can_and_says_what_it_could_not(
    app: Mainspring, url: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.secrets.set("broken", "value")
    app.secrets.set("whole", "value")
    execute(url, f"UPDATE {table(url, 'secrets')} SET sealed = 'v1.{key.partition(':')[0]}.x.y' WHERE name = 'broken'")
    newer = new_key()
    monkeypatch.setenv("MAINSPRING_KEYS", f"{newer},{key}")
    rotating = Mainspring(url)

    with pytest.raises(SealBroken, match="secret 'broken' of team 'default'"):
        rotating.secrets.rotate()
    assert {one.name: one.key_id for one in rotating.secrets.list()}["whole"] == newer.partition(":")[0]
    rotating.close()


@pytest.mark.parametrize("name", ["", "a b", "-a", "a/b", "ü", "a" * 129, 7, "a\n"])
def test_names_that_no_reference_could_have_are_refused(app: Mainspring, name: Any) -> None:
    with pytest.raises(InvalidValue, match="name of a secret"):
        app.secrets.set(name, "value")


@pytest.mark.parametrize("value", ["", 7, b"bytes", "x" * 65_537, "a\0b", "\ud800"])
def test_values_that_no_job_could_get_are_refused_and_not_shown(app: Mainspring, value: Any) -> None:
    with pytest.raises(InvalidValue) as refused:
        app.secrets.set("token", value)
    assert "xxx" not in str(refused.value)


def test_a_parameter_that_is_no_text_can_not_be_a_secret(app: Mainspring) -> None:
    @app.task
    def take(number: int, items: list[int]) -> None: ...

    with pytest.raises(InvalidPayload, match=r"argument 'number': .*secret.*text"):
        take.enqueue("secret://number", [])  # type: ignore[arg-type]
    with pytest.raises(InvalidPayload, match="argument 'items'"):
        take.enqueue(1, ["secret://number"])  # type: ignore[list-item]


def test_each_call_has_an_awaitable_twin(app: Mainspring) -> None:
    async def use() -> int:
        await app.secrets.aset("token", "value")
        found = len(await app.secrets.alist())
        await app.secrets.arotate()
        await app.secrets.aremove("token")
        return found

    assert asyncio.run(use()) == 1
    assert names(app) == []


def test_on_a_server_without_keys_it_is_said_how_to_get_some(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MAINSPRING_KEYS")
    app = Mainspring(postgres_url)

    with pytest.raises(KeyMissing, match="mainspring secrets new-key"):
        app.secrets.set("token", "value")
    app.close()


PLACES = [
    ("secrets", "sealed"),
    ("schedules", "definition"),
    ("signals", "value"),
    ("steps", "result"),
    ("jobs", "payload"),
    ("jobs", "plan"),
    ("jobs_done", "payload"),
    ("jobs_done", "result"),
    ("jobs_done", "plan"),
]


def seal_everywhere(url: str) -> None:
    """Leave something sealed in each of PLACES."""
    app = Mainspring(url, encrypt=True)

    @app.task
    def echo(text: str) -> str:
        return text

    @app.task
    def durable(ctx: Context, text: str) -> None:
        ctx.step("say", lambda: text)
        ctx.wait_signal("go")

    def saga() -> None:
        with app.workflow("saga") as wf:
            member = wf.add(echo, "text")
            member.on_failure(echo, "undone")
        wf.enqueue()

    app.secrets.set("token", "value")
    app.schedules.add("daily", echo, every("1d"), kwargs={"text": "text"})
    waiting = durable.enqueue("text")
    saga()
    drain(app)
    saga()
    waiting.signal("other", "text")
    app.close()


def leave_only(url: str, place: str, column: str) -> None:
    """Remove what is sealed from all other places."""
    for other, field in PLACES:
        if other != place:
            execute(url, f"DELETE FROM mainspring_{other}")
        elif field != column:
            execute(url, f"UPDATE mainspring_{other} SET {field} = '{{}}'")
    assert "sealed" in str(execute(url, f"SELECT {column} FROM mainspring_{place}")) or place == "secrets"


@pytest.mark.parametrize(("place", "column"), PLACES)
def test_a_key_file_that_is_lost_is_not_replaced_while_anything_is_sealed(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, place: str, column: str
) -> None:
    monkeypatch.delenv("MAINSPRING_KEYS")
    seal_everywhere(sqlite_url)
    leave_only(sqlite_url, place, column)
    kept = keyring(sqlite_url).beside
    assert kept is not None
    away = kept.rename(kept.with_name("away"))

    with pytest.raises(KeyMissing, match="is gone; restore it"):
        Mainspring(sqlite_url).secrets.set("token", "new")
    assert not kept.exists()
    away.rename(kept)
    assert keyring(sqlite_url).first


def test_where_nothing_is_sealed_a_key_is_made(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MAINSPRING_KEYS")
    app = Mainspring(sqlite_url)

    @app.task
    def echo(text: str) -> str:
        return text

    echo.enqueue('{ "sealed":"v1')
    app.schedules.add("daily", echo, every("1d"), kwargs={"text": "text"})
    drain(app)
    echo.enqueue("text")

    app.secrets.set("token", "value")

    app.secrets.remove("token")
    kept = keyring(sqlite_url).beside
    assert kept is not None
    kept.unlink()
    assert keyring(sqlite_url).first  # nothing is lost by that
    app.close()


def test_a_test_has_keys_of_its_own(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MAINSPRING_KEYS")
    app = Mainspring(sqlite_url)

    @app.task
    def take(token: str) -> int:
        return len(token)

    with isolated(app):
        app.secrets.set("token", "value")
        job = take.enqueue("secret://token")
        drain(app)
        assert job.result() == 5
    assert not app.secrets.list()
    app.close()
