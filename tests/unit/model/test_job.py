"""Jobs: what a request may say, and what a stored job tells."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest

from mainspring.errors import InvalidValue
from mainspring.model.failure import Failure
from mainspring.model.job import Job, JobState, NewJob, Priority, priority_of
from mainspring.model.text import shortened


def new_job(**changes: Any) -> NewJob:
    given: dict[str, Any] = {"id": UUID(int=1), "task": "greet", "payload": '{"args":[],"kwargs":{}}'}
    return NewJob(**given | changes)


def test_exactly_four_states_are_final() -> None:
    final = [state for state in JobState if state.final]

    assert final == [JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED, JobState.EXPIRED]


def test_named_priorities_grow_with_their_urgency() -> None:
    assert [(level.name, level.value) for level in Priority] == [
        ("LOW", 1),
        ("NORMAL", 5),
        ("HIGH", 10),
        ("URGENT", 20),
    ]


@pytest.mark.parametrize("field", ["task", "queue"])
@pytest.mark.parametrize("name", ["a", "_", "7", "mail", "app.mail:send/v2-x", "a" * 128])
def test_a_name_that_a_url_carries_as_it_is_is_accepted(field: str, name: str) -> None:
    assert getattr(new_job(**{field: name}), field) == name


@pytest.mark.parametrize("field", ["task", "queue"])
@pytest.mark.parametrize("name", ["", ".a", "-a", "a b", "a\n", "a\0", "é", "a" * 129, "\ud800", 7, None])
def test_any_other_name_is_refused(field: str, name: Any) -> None:
    with pytest.raises(InvalidValue) as caught:
        new_job(**{field: name})

    assert str(caught.value).startswith(f"expected {field} to be 1 to 128 ASCII letters, digits or any of _.:/- ")
    assert str(caught.value).endswith(f"got: {shortened(name)}")


@pytest.mark.parametrize("priority", [0, 1, 100, Priority.URGENT])
def test_a_priority_from_0_to_100_is_accepted(priority: int) -> None:
    assert new_job(priority=priority).priority == priority


@pytest.mark.parametrize("priority", [-1, 101, True, 5.0, "high", None])
def test_any_other_priority_is_refused(priority: Any) -> None:
    with pytest.raises(InvalidValue) as caught:
        new_job(priority=priority)

    assert str(caught.value) == f"expected priority to be a whole number from 0 to 100, got: {priority!r}"


@pytest.mark.parametrize("name", ["urgent", "URGENT", "Urgent", 20, Priority.URGENT])
def test_a_priority_has_a_name_in_any_case_and_a_number(name: Any) -> None:
    assert priority_of(name) == Priority.URGENT


@pytest.mark.parametrize(("name", "hint"), [("Urgnt", ", did you mean 'urgent'?"), ("", ""), ("20", "")])
def test_any_other_name_of_a_priority_is_refused(name: str, hint: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        priority_of(name)

    assert str(caught.value) == (
        f"expected priority to be a whole number from 0 to 100 or one of low, normal, high, urgent, got: {name!r}{hint}"
    )


def test_a_job_like_another_differs_in_id_and_payload_only() -> None:
    one = new_job(queue="mail", priority=9, delay=timedelta(seconds=1), key="k")

    other = one.like(UUID(int=2), "{}")

    assert msgspec.structs.asdict(other) == msgspec.structs.asdict(one) | {"id": UUID(int=2), "payload": "{}"}
    assert one.id == UUID(int=1)


@pytest.mark.parametrize(("job_id", "payload"), [("2", "{}"), (UUID(int=2), b"{}"), (UUID(int=2), "\0")])
def test_what_a_job_like_another_has_of_its_own_is_checked(job_id: Any, payload: Any) -> None:
    with pytest.raises(InvalidValue, match=r"^expected (id|payload) to be "):
        new_job().like(job_id, payload)


def test_a_naive_due_time_is_refused() -> None:
    with pytest.raises(InvalidValue, match="expected run_at to have a time zone, got the naive datetime"):
        new_job(run_at=datetime(2026, 1, 1))  # noqa: DTZ001


def test_a_due_time_with_a_zone_is_accepted() -> None:
    due = datetime(2026, 1, 1, tzinfo=UTC)

    assert new_job(run_at=due).run_at == due


def test_a_job_is_due_at_once_unless_it_says_otherwise() -> None:
    made = new_job()

    assert (made.run_at, made.delay) == (None, timedelta(0))
    assert (made.queue, made.priority, made.key) == ("default", Priority.NORMAL, None)


@pytest.mark.parametrize("key", ["k", "order:7 (é)", "x" * 512, "é" * 256, "\\u0000"])
def test_a_key_of_up_to_512_bytes_is_accepted(key: str) -> None:
    assert new_job(key=key).key == key


@pytest.mark.parametrize("key", ["", "a\0", "\ud800", "x" * 513, "é" * 257, 7, b"key"])
def test_a_key_that_a_database_could_not_keep_or_index_is_refused(key: Any) -> None:
    with pytest.raises(InvalidValue, match=r"^expected key to be ") as caught:
        new_job(key=key)

    assert str(caught.value).endswith(shortened(key))


def stored_job(**facts: Any) -> Job:
    """Return a job of which only *facts* are known."""
    nothing: dict[str, Any] = dict.fromkeys(Job.__struct_fields__) | {"holds": ()}
    return Job(**nothing | facts)


@pytest.mark.parametrize("failure", [Failure(type="KeyError", message="'a'", traceback="T"), None])
def test_a_stored_job_tells_its_last_failure(failure: Failure | None) -> None:
    error = None if failure is None else msgspec.json.encode(failure).decode()

    assert stored_job(error=error).failure == failure


@pytest.mark.parametrize(
    ("value", "shown"),
    [("a", "'a'"), ("x" * 58, f"'{'x' * 58}'"), ("x" * 59, f"'{'x' * 58}…"), (list(range(9)), repr(list(range(9))))],
)
def test_a_value_in_a_message_is_cut_to_60_characters(value: object, shown: str) -> None:
    assert shortened(value) == shown
    assert len(shortened(value)) <= 60


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "order-17"},
        {"id": 5},
        {"payload": b"{}"},
        {"payload": '"abc\0def"'},
        {"payload": '"\ud800"'},
        {"delay": 5},
        {"delay": "10m"},
    ],
)
def test_what_a_database_would_choke_on_is_refused_before_it_gets_there(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue, match=f"expected {next(iter(changes))} to be"):
        new_job(**changes)


@pytest.mark.parametrize("name", ["key", "idempotency_key", "fair"])
def test_a_key_that_could_be_taken_for_one_of_a_team_is_refused(name: str) -> None:
    with pytest.raises(InvalidValue, match=f"expected {name} that does not begin with @"):
        new_job(**{name: "@acme/1"})


def test_a_job_that_is_given_to_a_team_has_its_keys_among_those_of_the_team() -> None:
    given = new_job(key="a/b", idempotency_key="c", fair="d").given_to("acme")

    assert (given.team, given.key, given.idempotency_key, given.fair) == ("acme", "@acme/a/b", "@acme/c", "@acme/d")
    assert given.given_to("beta").key == "@beta/a/b"
    assert new_job().given_to("acme").fair == "@acme/"
    assert new_job().given_to(None).fair is None


def test_a_job_is_given_to_a_team_however_long_its_keys_are() -> None:
    longest = "k" * 512

    assert new_job(key=longest).given_to("a" * 40).key == f"@{'a' * 40}/{longest}"
