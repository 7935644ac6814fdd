"""Failure: what is kept of an exception says what went wrong, also when others were wrapped around it."""

from __future__ import annotations

import asyncio

from mainspring.model.failure import Failure
from mainspring.worker.failure import failure_of


def refuse(user: int) -> None:
    raise ConnectionError(f"the mail server refused user {user}")


def raised(*users: int) -> ExceptionGroup[Exception]:
    """Return what a task group raises when the mails to all *users* were refused."""

    async def send(user: int) -> None:
        refuse(user)

    async def send_all() -> None:
        async with asyncio.TaskGroup() as group:
            for user in users:
                group.create_task(send(user))

    try:
        asyncio.run(send_all())
    except ExceptionGroup as error:
        return error
    raise AssertionError("they were sent")


def kept_of(error: BaseException) -> tuple[Failure, str]:
    failure = failure_of(error, "send_mail")
    assert failure.traceback is not None
    return failure, failure.traceback


def test_what_a_group_holds_is_kept_with_where_it_happened() -> None:
    failure, traceback = kept_of(raised(7, 8))

    assert failure.type == "ExceptionGroup"
    assert failure.message.endswith("(2 sub-exceptions): ConnectionError: the mail server refused user 7")
    assert "the mail server refused user 8" in traceback
    assert traceback.count("in refuse") == 2


def test_groups_within_groups_are_looked_into() -> None:
    failure, traceback = kept_of(ExceptionGroup("outer", [ExceptionGroup("inner", [ValueError("no")]), KeyError("x")]))

    assert failure.message == "outer (2 sub-exceptions): ValueError: no"
    assert traceback.index("ValueError: no") < traceback.index("KeyError: 'x'")


def test_a_group_has_the_fingerprint_of_what_went_wrong() -> None:
    try:
        refuse(9)
    except ConnectionError as error:
        alone, _ = kept_of(error)

    assert kept_of(raised(7))[0].fingerprint == kept_of(raised(8, 9))[0].fingerprint == alone.fingerprint


def test_what_led_to_an_exception_in_a_group_is_kept() -> None:
    wrapped = ValueError("no address")
    wrapped.__cause__ = KeyError("address")

    _, traceback = kept_of(ExceptionGroup("several", [wrapped]))

    assert "KeyError: 'address'\n\nwhich led to:" in traceback


def test_a_large_group_is_kept_in_part() -> None:
    deep: Exception = ValueError("at the bottom")
    for _ in range(1_000):
        deep = ExceptionGroup("deep", [deep])

    _, traceback = kept_of(ExceptionGroup("wide", [ValueError(str(n)) for n in range(100_000)]))
    kept_of(deep)

    assert traceback.count("in which there was") == 10


def test_notes_are_kept() -> None:
    error = ValueError("no")
    error.add_note("while sending to user 7")
    odd = ValueError("no")
    odd.__notes__ = 5  # type: ignore[assignment] # nobody checks

    assert kept_of(error)[1].endswith("ValueError: no\nwhile sending to user 7")
    assert kept_of(odd)[1].endswith("ValueError: no")
