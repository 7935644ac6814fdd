"""The audit log of an app."""

from __future__ import annotations

import asyncio

import pytest

from mainspring import Mainspring
from mainspring.errors import InvalidValue
from mainspring.model.audit import Entry


def test_within_a_team_the_log_is_the_teams(app: Mainspring) -> None:
    acme, beta = app.within("acme"), app.within("beta")
    acme.audit.record([Entry("ada", "job.cancel", "1", team="beta")])
    beta.audit.record([Entry("bob", "job.cancel", "2")])
    app.audit.record([Entry("root", "token.create", "3"), Entry("root", "team.set", "acme", team="acme")])

    assert [one.target for one in acme.audit.list()] == ["acme", "1"]
    assert [one.target for one in beta.audit.list()] == ["2"]
    assert acme.audit.list(team="beta") == []
    assert [one.target for one in app.audit.list()] == ["acme", "3", "2", "1"]
    assert [one.target for one in app.audit.list(team="beta")] == ["2"]
    assert [one.target for one in app.audit.list(before=3, limit=1)] == ["2"]
    assert acme.audit.verify().entries == 4


@pytest.mark.parametrize("given", [{"limit": -1}, {"before": "x"}, {"before": True}])
def test_what_is_no_page_is_refused(app: Mainspring, given: dict[str, int]) -> None:
    with pytest.raises(InvalidValue, match="expected"):
        app.audit.list(**given)  # type: ignore[arg-type]


def test_each_call_can_be_awaited(app: Mainspring) -> None:
    async def life() -> None:
        await app.audit.arecord([Entry("ada", "job.cancel", "1")])
        assert len(await app.audit.alist()) == 1
        assert (await app.audit.averify()).whole

    asyncio.run(life())
