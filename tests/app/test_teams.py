"""An app within a team: what it makes is the team's, and what is another's is not there for it."""

from __future__ import annotations

import pytest

from mainspring import Mainspring
from mainspring.errors import InvalidValue, JobNotFound
from mainspring.model.team import full_name, local_name


def test_what_is_enqueued_within_a_team_is_the_teams(app: Mainspring) -> None:
    @app.task
    def greet(name: str) -> str:
        return name

    acme = app.within("acme")
    job = acme.enqueue("greet", ["Ada"])

    assert app.client.get(job.id).team == "acme"
    assert [one.id for one in acme.jobs()] == [job.id]
    assert app.within("beta").jobs() == []
    with pytest.raises(JobNotFound):
        app.within("beta").job(job.id)
    with pytest.raises(JobNotFound):
        app.within("default").job(job.id)


def test_keys_of_two_teams_are_two(app: Mainspring) -> None:
    @app.task(key="welcome:{name}")
    def greet(name: str) -> str:
        return name

    ours, theirs, platforms = (
        place.enqueue("greet", ["Ada"]) for place in (app.within("acme"), app.within("beta"), app)
    )
    again = app.within("acme").enqueue("greet", ["Ada"])

    assert len({ours.id, theirs.id, platforms.id}) == 3
    assert again.id == ours.id


def test_what_a_teams_job_adds_is_the_teams(app: Mainspring) -> None:
    from mainspring import Context
    from mainspring.testing import drain

    @app.task(key="child:{n}")
    def child(n: int) -> int:
        return n

    @app.task
    def parent(ctx: Context) -> None:
        ctx.add(child, 1)

    app.within("acme").enqueue("parent")
    drain(app)

    (made,) = app.jobs(task="child")
    stored = app.client.get(made.id)
    assert (stored.team, stored.key) == ("acme", "@acme/child:1")


def test_names_of_teams_and_in_teams_are_told_apart() -> None:
    assert full_name("acme", "digest") == "@acme/digest"
    assert full_name(None, "digest") == "digest"
    assert local_name("@acme/a/b") == "a/b"
    assert local_name("digest") == "digest"
    with pytest.raises(InvalidValue, match="does not begin with @"):
        full_name(None, "@acme/digest")


@pytest.mark.parametrize("name", ["", "Acme", "a/b", "-a", "a" * 41, "@a", None])
def test_names_that_are_no_teams_are_refused(app: Mainspring, name: str) -> None:
    with pytest.raises(InvalidValue, match="the name of a team"):
        app.within(name)
