"""Rules for retention of an app, and of one that is bound to a team."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from mainspring import JobState, Mainspring
from mainspring.errors import InvalidValue
from mainspring.retention import Covers, RetentionRule

WEEK = timedelta(days=7)


def test_rules_are_set_listed_and_removed(app: Mainspring) -> None:
    first = app.retention.set(state="failed", age="7d")
    second = app.retention.set(queue="mail", count=100)
    third = app.retention.set(state=JobState.FAILED, age="8d", count=5)

    assert first == RetentionRule(Covers(state=JobState.FAILED), WEEK)
    assert app.retention.list() == [second, third]
    assert (app.retention.remove(state="failed"), app.retention.remove(state="failed")) == (True, False)
    assert app.retention.list() == [second]


def test_a_rule_for_everything_is_listed_only_while_it_is_set(app: Mainspring) -> None:
    rule = app.retention.set(age="90d")

    assert app.retention.list() == [rule]
    assert app.retention.remove() is True
    assert app.retention.list() == []
    assert app.retention.remove() is False


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "expected an age or a count to keep, got neither"),
        ({"age": 0}, "expected age to be a duration longer than 0"),
        ({"age": "a while"}, "expected age to be a duration"),
        ({"count": 0}, "expected count to be a whole number from 1 to 100,000,000, got: 0"),
        ({"count": True}, "expected count to be a whole number"),
        ({"age": "1d", "state": "ready"}, "expected state to be one in which a job has ended"),
        ({"age": "1d", "state": "faild"}, "got: 'faild', did you mean 'failed'"),
        ({"age": "1d", "queue": "no queue"}, "expected queue to be"),
        ({"age": "1d", "team": "No Team"}, "expected the name of a team"),
    ],
)
def test_what_makes_no_sense_is_refused(app: Mainspring, given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        app.retention.set(**given)

    assert message in str(refused.value)
    assert app.retention.list() == []


def test_a_team_rules_its_own_jobs_only(app: Mainspring) -> None:
    app.retention.set(age="90d")
    theirs = app.within("acme").retention
    rule = theirs.set(state="succeeded", age="1d")
    app.within("other").retention.set(age="2d")

    assert rule.covers == Covers(team="acme", state=JobState.SUCCEEDED)
    assert theirs.list() == [rule]
    assert [one.covers.team for one in theirs.prunable()] == ["acme"]
    assert theirs.remove() is False
    with pytest.raises(InvalidValue, match="expected rules of an app of team 'acme' to be about that, got: 'other'"):
        theirs.remove(team="other")
    with pytest.raises(InvalidValue, match="expected an app that is bound to no team to prune"):
        theirs.prune()
    assert len(app.retention.list()) == 3


async def _twins(app: Mainspring) -> list[int]:
    await app.retention.aset(age="1d")
    told = [len(await app.retention.alist()), len(await app.retention.aprunable()), await app.retention.aprune()]
    return [*told, int(await app.retention.aremove())]


def test_all_of_it_can_be_awaited(app: Mainspring) -> None:
    assert asyncio.run(_twins(app)) == [1, 1, 0, 1]
