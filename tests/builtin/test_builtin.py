"""Tasks that every program knows."""

from __future__ import annotations

import pytest

from mainspring import InvalidValue, Mainspring, TaskNotFound, every
from mainspring.errors import InvalidPayload
from tests.support.receiver import receiving

LONG = "60s"


@pytest.fixture
def url(sqlite_url: str) -> str:
    return sqlite_url


def test_their_names_cant_be_taken(app: Mainspring) -> None:
    with pytest.raises(InvalidValue, match=r"does not begin with 'mainspring\.'"):
        app.task(name="mainspring.mine")(print)


def test_they_are_known_by_name_and_others_of_the_kind_are_not(app: Mainspring) -> None:
    with pytest.raises(TaskNotFound, match=r"did you mean 'mainspring\.http'"):
        app.enqueue("mainspring.htp", kwargs={"url": "http://a.example"})
    app.enqueue("anything", kwargs={"url": "http://a.example"})
    app.task(name="own")(print)
    with pytest.raises(TaskNotFound, match=r"mainspring\.command"):
        app.enqueue("mainspring.comand", kwargs={"argv": ["true"]})


def test_they_are_none_of_the_programs_own(app: Mainspring) -> None:
    assert (len(app.tasks), list(app.tasks)) == (0, [])


def test_a_worker_serves_them_beside_tasks_of_other_queues(app: Mainspring, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSPRING_OUTBOUND_ALLOW", "127.0.0.1")

    @app.task(queue="mail")
    def own() -> str:
        return "done"

    with receiving() as receiver, app.worker() as node:
        assert set(node.queues) == {"mail", "default"}
        assert own.enqueue().result(timeout=LONG) == "done"
        assert app.http.enqueue(receiver.url).result(timeout=LONG)["status"] == 200

        @app.task(queue="mail")
        def late() -> str:
            return "late"

        assert late.enqueue().result(timeout=LONG) == "late"


def test_they_can_be_scheduled_and_stand_in_workflows(app: Mainspring, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSPRING_OUTBOUND_ALLOW", "127.0.0.1")
    with receiving() as receiver:
        app.schedules.add("ping", "mainspring.http", every("1h"), kwargs={"url": receiver.url})
        with pytest.raises(InvalidPayload):
            app.schedules.add("pong", app.http, every("1h"), kwargs={"uri": receiver.url})
        with app.worker():
            assert app.schedules.trigger("ping").result(timeout=LONG)["status"] == 200
            with app.workflow("two") as wf:
                wf.add(app.http, receiver.url)
                wf.add("mainspring.http", f"{receiver.url}/second")
            wf.enqueue().result(timeout=LONG)
    assert receiver.connections == 3


def test_only_workers_that_allow_commands_say_that_they_have_somebody_for_them(app: Mainspring) -> None:
    with app.worker():
        (session,) = app.client.store.sessions()
        assert set(session.tasks) == {"mainspring.http", "mainspring.webhook", "mainspring.email"}
    with app.worker(commands=["true"]):
        assert "mainspring.command" in {task for one in app.client.store.sessions() for task in one.tasks}


def test_a_worker_that_was_told_nonsense_about_where_requests_may_go_does_not_start(
    app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAINSPRING_OUTBOUND_ALLOW", "10.0.0.0/99")
    with pytest.raises(InvalidValue, match="expected what requests may reach"), app.worker():
        pass


@pytest.mark.parametrize(
    ("name", "nonsense"),
    [
        ("MAINSPRING_SMTP", "foo"),
        ("MAINSPRING_SMTP", "smtp://mail.example.org"),
        ("MAINSPRING_MAIL_FROM", "foo"),
        ("MAINSPRING_BASE_URL", "foo"),
        ("MAINSPRING_BASE_URL", "ftp://x"),
        ("MAINSPRING_BASE_URL", "https://"),
        ("MAINSPRING_BASE_URL", "https://x/?y=z"),
    ],
)
def test_nor_does_one_that_was_told_nonsense_about_mail_or_links(
    app: Mainspring, monkeypatch: pytest.MonkeyPatch, name: str, nonsense: str
) -> None:
    monkeypatch.setenv(name, nonsense)
    with pytest.raises(InvalidValue, match=f"expected {name} to be"), app.worker():
        pass


def test_what_the_docs_show_is_fine(app: Mainspring, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSPRING_SMTP", "smtp+starttls://user:password@mail.example.org:587")
    monkeypatch.setenv("MAINSPRING_MAIL_FROM", "Mainspring <jobs@example.org>")
    monkeypatch.setenv("MAINSPRING_BASE_URL", "https://jobs.example.org")
    with app.worker():
        pass


def test_the_executor_of_commands_is_for_nobody_else(app: Mainspring) -> None:
    with pytest.raises(InvalidValue, match="expected executor to be one of thread, coroutine, process"):
        app.task(executor="command")(print)
