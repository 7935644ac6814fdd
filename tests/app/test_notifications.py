"""Notifications as a program asks for them, from the handler to the receiver."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest

from mainspring import Context, Email, InvalidValue, Mainspring, MainspringError, Retry, Webhook, every
from mainspring.errors import NotificationNotFound
from mainspring.model.job import NOTIFY_QUEUE as QUEUE
from mainspring.model.job import JobState
from mainspring.notify import Delivery, verify
from mainspring.outbound import Outbound
from tests.notify.test_webhook import parts
from tests.support.mailbox import indiscreet_server, mail_server
from tests.support.notices import events, notice_of, notifications
from tests.support.receiver import Receiver, answering, receiving
from tests.support.waiting import until

LOOPBACK = Outbound(allow=["127.0.0.1"])
ONCE = Retry(max_attempts=1)


def run_all(app: Mainspring, delivery: Delivery, enqueue: Callable[[], object]) -> None:
    """Run what *enqueue* enqueues, and all that comes of it."""
    with app.worker(delivery=delivery):
        enqueue()
        until(lambda: not app.client.store.counts())


def bodies(receiver: Receiver) -> list[dict[str, Any]]:
    return [json.loads(parts(request)[2]) for request in receiver.requests]


def test_a_receiver_is_told_of_a_failure_and_of_the_recovery(app: Mainspring) -> None:
    broken = [True]
    with receiving() as receiver:

        @app.task(retry=ONCE, notify=[Webhook(receiver.url, secret="s3cret")])
        def work(secret_argument: str) -> str:
            if broken:
                raise ValueError("boom")
            return "secret result"

        def fail_and_replay() -> None:
            job = work.enqueue("canary")
            until(lambda: job.refresh().state is JobState.FAILED)
            broken.clear()
            job.replay()

        run_all(app, Delivery(outbound=LOOPBACK), fail_and_replay)

    assert sorted(body["event"] for body in bodies(receiver)) == ["failure", "recovered"]
    assert len({body["id"] for body in bodies(receiver)}) == 2
    for request in receiver.requests:
        _, headers, body = parts(request)
        assert verify("s3cret", headers, body)
        assert b"canary" not in request
        assert b"secret result" not in request


def test_what_tells_people_is_seen_like_any_job(app: Mainspring) -> None:
    with receiving(answering("404 Not")) as receiver:
        task = app.task(name="work", notify=[Webhook(receiver.url, on="success")])(lambda: None)
        run_all(app, Delivery(outbound=LOOPBACK), task.enqueue)

    (told,) = app.jobs(queue=QUEUE)
    (attempt,) = told.attempts()
    assert (told.state, told.refresh().attempt) == (JobState.FAILED, 1)
    assert json.loads(attempt.details or "{}")["status"] == 404
    assert app.dead.groups()[0].task == "mainspring.webhook"


def test_what_may_pass_is_tried_again_later(app: Mainspring) -> None:
    with receiving(answering("503 Later", "Retry-After: 3600\r\n")) as receiver:
        task = app.task(name="work", notify=[Webhook(receiver.url, on="success")])(lambda: None)
        with app.worker(delivery=Delivery(outbound=LOOPBACK)):
            task.enqueue()
            until(lambda: app.client.store.counts().get(QUEUE) == {JobState.RETRYING: 1})

    (told,) = notifications(app.client.store)  # type: ignore[arg-type]
    assert (told.run_at - told.created_at).total_seconds() > 3_600


def test_a_mail_goes_out_within_what_a_team_may_send(app: Mainspring) -> None:
    with mail_server() as mailbox:
        task = app.task(name="work", notify=[Email("ops@example.org", on="success")])(lambda: None)
        run_all(app, Delivery(smtp=mailbox.url, mail_from="jobs@example.org"), task.enqueue)

    assert [mail["Subject"] for mail in mailbox.mails] == ["[default] work succeeded"]
    assert [limit.key for limit in app.limits.list()] == ["mainspring.email:default"]


@pytest.mark.parametrize("refuses", ["AUTH", "RCPT"])
def test_with_what_the_mail_server_is_logged_in_to_is_kept_nowhere(app: Mainspring, refuses: str) -> None:
    task = app.task(name="work", notify=[Email("ops@example.org", on="success")])(lambda: None)
    with indiscreet_server(refuses) as place:
        smtp = f"smtp://jobs-user:canary-bird@{place}"
        with app.worker(delivery=Delivery(smtp=smtp, mail_from="jobs@example.org")):
            task.enqueue()
            until(lambda: any(one.error for job in app.jobs(queue=QUEUE) for one in job.attempts()))

    (told,) = app.jobs(queue=QUEUE)
    attempt, *_ = told.attempts()
    kept = f"{attempt.error} {attempt.details} {told.refresh().error}"
    assert "Traceback" in kept
    encoded = b64encode(b"\0jobs-user\0canary-bird").decode()
    assert not [word for word in ("canary", "jobs-user", encoded) if word in kept]


def test_where_a_webhook_leads_is_kept_nowhere_though_the_receiver_repeats_it(app: Mainspring) -> None:
    with receiving(answering("404 Not", body=b"Cannot POST /hooks/canary-bird?key=canary-two")) as receiver:
        hook = Webhook(f"{receiver.url}/hooks/canary-bird?key=canary-two", on="success")
        task = app.task(name="work", notify=[hook])(lambda: None)
        run_all(app, Delivery(outbound=LOOPBACK), task.enqueue)
        app.notifications.add("hook", hook)
        with pytest.raises(MainspringError) as raised:
            app.notifications.test("hook", delivery=Delivery(outbound=LOOPBACK))

    (told,) = app.jobs(queue=QUEUE)
    (attempt,) = told.attempts()
    kept = f"{attempt.error} {attempt.details} {told.refresh().error} {raised.value}"
    assert "Traceback" in kept
    assert "canary" not in kept


def test_nobody_is_told_of_a_transaction_that_its_handler_breaks_off(app: Mainspring) -> None:
    with receiving() as receiver:

        @app.task(retry=ONCE, notify=[Webhook(receiver.url, on=["success", "failure"])])
        def work(ctx: Context) -> None:
            with ctx.transaction():
                raise ValueError("boom")

        run_all(app, Delivery(outbound=LOOPBACK), work.enqueue)

    assert [body["event"] for body in bodies(receiver)] == ["failure"]


def test_a_transaction_that_commits_is_told_of(app: Mainspring) -> None:
    with receiving() as receiver:

        @app.task(notify=[Webhook(receiver.url, on=["success", "failure"])])
        def work(ctx: Context) -> None:
            with ctx.transaction():
                pass

        run_all(app, Delivery(outbound=LOOPBACK), work.enqueue)

    assert [body["event"] for body in bodies(receiver)] == ["success"]


def test_a_worker_that_serves_one_queue_tells_people_too(app: Mainspring) -> None:
    with receiving() as receiver:
        task = app.task(name="work", queue="mail", notify=[Webhook(receiver.url, on="success")])(lambda: None)
        with app.worker(queues={"mail": 1}, delivery=Delivery(outbound=LOOPBACK)) as node:
            task.enqueue()
            until(lambda: receiver.requests)

    assert dict(node.queues) == {"mail": 1}


# --- who says whom to tell


def channels_of(app: Mainspring, job_id: Any) -> str | None:
    return app.client.get(job_id).notify


HOOK, MAIL = Webhook("https://example.org"), Email("ops@example.org")


def test_a_job_may_name_others_than_its_task(app: Mainspring) -> None:
    task = app.task(name="work", notify=[HOOK])(lambda: None)

    jobs = [task.enqueue(), task.using(notify=[MAIL]).enqueue(), task.using(notify=[]).enqueue()]

    told = [channels_of(app, job.id) for job in jobs]
    assert "webhook" in (told[0] or "")
    assert "email" in (told[1] or "")
    assert "webhook" not in (told[1] or "")
    assert told[2] is None


def test_a_schedule_names_whom_its_task_names_unless_it_says_otherwise(app: Mainspring) -> None:
    task = app.task(name="work", notify=[HOOK])(lambda: None)

    plain = app.schedules.add("a", task, every("1h"))
    other = app.schedules.add("b", task, every("1h"), notify=[MAIL])

    assert "webhook" in (plain.definition.notify or "")
    assert "email" in (other.definition.notify or "")
    assert channels_of(app, app.schedules.trigger("b").id) == other.definition.notify


def test_a_workflow_names_its_own_and_the_jobs_of_a_map_name_nobody(app: Mainspring) -> None:
    @app.task(notify=[Webhook("https://example.org", on="success")])
    def double(n: int) -> int:
        return 2 * n

    with app.workflow("etl", notify=[Email("ops@example.org", on="success")]) as workflow:
        workflow.map(double, [1, 2, 3])

    with app.worker(delivery=Delivery(outbound=Outbound())):
        run = workflow.enqueue()
        until(lambda: run.refresh().state is JobState.SUCCEEDED)

    told = notifications(app.client.store)  # type: ignore[arg-type]
    assert sorted((job.task, notice_of(job)["task"]) for job in told) == [
        ("mainspring.email", "etl"),
        ("mainspring.webhook", "double"),
    ]


@pytest.mark.parametrize("notify", ["https://example.org", ["https://example.org"], 7])
def test_what_is_no_channel_is_refused_where_it_is_said(app: Mainspring, notify: Any) -> None:
    task = app.task(name="work")(lambda: None)
    for say in (
        lambda: app.task(name="other", notify=notify)(lambda: None),
        lambda: task.using(notify=notify).enqueue(),
        lambda: app.schedules.add("a", task, every("1h"), notify=notify),
        lambda: app.workflow("etl", notify=notify),
    ):
        with pytest.raises(InvalidValue, match="expected notify to be a list of Webhook and Email"):
            say()


def test_nobody_can_enqueue_what_tells_people(app: Mainspring) -> None:
    app.task(name="work")(lambda: None)

    for name in ("mainspring.webhook", "mainspring.email"):
        with pytest.raises(MainspringError, match="no task is named"):
            app.enqueue(name, kwargs={"to": "x", "team": "default", "notice": {}})


# --- teams


def test_rules_are_those_of_the_team_that_an_app_is_bound_to(app: Mainspring) -> None:
    acme, beta = app.within("acme"), app.within("beta")
    rule = acme.notifications.add("ops", HOOK)
    app.notifications.add("ops", MAIL)

    assert (rule.team, acme.notifications.get("ops").channel) == ("acme", HOOK)
    assert [one.team for one in acme.notifications.list()] == ["acme"]
    assert list(beta.notifications.list()) == []
    assert [one.team for one in app.notifications.list()] == ["acme", "default"]
    assert app.notifications.get("ops", team="acme") == rule
    with pytest.raises(NotificationNotFound, match="no notification has the id 'ops'"):
        beta.notifications.remove("ops")
    with pytest.raises(NotificationNotFound, match="did you mean 'ops'"):
        acme.notifications.get("op")
    with pytest.raises(InvalidValue, match="bound to team 'beta'"):
        beta.notifications.remove("ops", team="acme")


@pytest.mark.parametrize(("rule_id", "channel"), [("", HOOK), ("no name", HOOK), ("ops", "https://example.org")])
def test_what_is_no_rule_is_refused(app: Mainspring, rule_id: str, channel: Any) -> None:
    with pytest.raises(InvalidValue):
        app.notifications.add(rule_id, channel)


def test_rules_have_awaitable_twins(app: Mainspring) -> None:
    async def all_of_them() -> list[str]:
        await app.notifications.aadd("ops", HOOK)
        await app.notifications.aget("ops")
        found = [one.id for one in await app.notifications.alist()]
        await app.notifications.aremove("ops")
        return found

    assert asyncio.run(all_of_them()) == ["ops"]


def test_jobs_that_a_team_has_are_told_to_it_alone(app: Mainspring) -> None:
    task = app.task(name="work")(lambda: None)
    app.notifications.add("ops", Email("ops@example.org", on="success"), team="acme")
    with app.worker(delivery=Delivery()):
        task.enqueue()
        app.within("acme").enqueue("work")
        until(lambda: "default" not in app.client.store.counts())

    assert events(app.client.store) == ["success"]  # type: ignore[arg-type]
    assert notifications(app.client.store)[0].team == "acme"  # type: ignore[arg-type]


def test_nobody_elses_jobs_get_into_the_queue_that_every_node_serves(app: Mainspring) -> None:
    @app.task
    def greet() -> None: ...

    with pytest.raises(InvalidValue, match="does not begin with 'mainspring"):
        greet.using(queue=QUEUE).enqueue()
    with pytest.raises(InvalidValue, match="does not begin with 'mainspring"):
        app.within("evil").enqueue("mainspring.command", [["touch", "x"]], queue=QUEUE)
    with pytest.raises(InvalidValue, match="does not begin with 'mainspring"):
        app.schedules.add("s", greet, every("1h"), queue=QUEUE)
    assert app.jobs() == []
