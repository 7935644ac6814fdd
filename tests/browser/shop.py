"""A shop that has been at work for a day and a half: something to see on every page, and the same each time."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import patch
from uuid import UUID

from msgspec.structs import replace

from mainspring import Breaker, Context, Email, JobState, Limit, Mainspring, Overlap, Retry, Webhook, cron, every
from mainspring.alerts import dead, depth, error_rate, missed_schedules
from mainspring.clock import SystemClock
from mainspring.job_handle import JobHandle
from mainspring.model.audit import Entry
from mainspring.model.failure import Failure
from mainspring.model.history import span_start
from mainspring.model.job import Job
from mainspring.model.journal import LogLine, Progress
from mainspring.model.session import NewSession
from mainspring.store import samples
from mainspring.store.sql import SqlStore
from mainspring.tally import Counts
from mainspring.testing import SettableClock, drain
from mainspring.worker.failure import failure_of
from mainspring.workflow_handle import WorkflowHandle

_PAST = timedelta(hours=36)
_STEP = timedelta(minutes=30)
_LATELY = timedelta(minutes=2)
_WORKERS = ("mill-1", "mill-2")
Take = Callable[[float], None]
"""Lets so many seconds pass, or about so many."""

_OPERATOR = "token:k7m2q4wzx5ab Ada"


@dataclass(frozen=True)
class Shop:
    """What there is of each kind of thing that has a page of its own."""

    job: UUID
    failed: UUID
    running: UUID
    waiting: UUID
    durable: UUID
    workflow: UUID
    broken_workflow: UUID
    unfinished_workflow: UUID
    schedule: str
    group: str
    queue: str
    breaker: str
    alert: str
    notification: str
    token: str
    secret: str


def add_tasks(app: Mainspring, clock: SettableClock | None = None, chance: random.Random | None = None) -> None:
    """Give *app* the tasks of the shop. They take their time on a *clock* that somebody sets, and fail by *chance*."""
    luck = chance or random.Random(7)

    def take(seconds: float) -> None:
        if clock is not None:
            clock.advance(seconds * luck.uniform(0.7, 1.4))

    _add_orders(app, take, luck)
    _add_stock(app, take, luck)
    _add_reports(app, take)


def _add_orders(app: Mainspring, take: Take, luck: random.Random) -> None:
    @app.task(queue="mail", retry=Retry(max_attempts=3, base="20s"), limits=[Limit("smtp", rate="100/m")])
    def send_receipt(ctx: Context, order: int, to: str) -> str:
        take(0.4)
        if luck.random() < 0.1:
            raise ConnectionError("smtp.example.org closed the connection")
        ctx.log.info("receipt of order %s sent to %s", order, to)
        return f"sent to {to}"

    @app.task(queue="payments", retry=Retry(max_attempts=1), breaker=Breaker("bank"), key="charge-{order}")
    def charge_card(order: int, cents: int) -> dict[str, Any]:
        take(1.2)
        if order % 9 == 0:
            raise TimeoutError(f"the bank did not answer within 10 s for order {order}")
        return {"order": order, "charged": cents, "currency": "EUR"}

    @app.task
    def deliver_order(ctx: Context, order: int) -> str:
        ctx.step("reserve", take, 2)
        ctx.step("hand to the carrier", take, 4)
        return str(ctx.wait_signal("delivered", timeout="5d"))


def _add_stock(app: Mainspring, take: Take, luck: random.Random) -> None:
    @app.task(queue="images", limits=[Limit("resize", concurrency=2)])
    def resize_image(path: str, width: int) -> str:
        take(3)
        return f"{path}@{width}.webp"

    @app.task(retry=Retry(max_attempts=1))
    def sync_stock(ctx: Context, warehouse: str) -> int:
        ctx.log.info("asking %s what is on the shelves", warehouse)
        take(20)
        if luck.random() < 0.08:
            raise ValueError(f"warehouse {warehouse} says -3 of article 80712")
        ctx.log.info("3 articles have no price")
        return luck.randrange(400, 900)

    @app.task(queue="reports")
    def import_catalogue(supplier: str, articles: int) -> int:
        take(30)
        return articles

    @app.schedule(every("30m"), id="prices", notes="From all suppliers, the largest first.")
    @app.task
    def compare_prices() -> None:
        take(40)


def _add_reports(app: Mainspring, take: Take) -> None:
    @app.task(queue="reports")
    def read_orders(day: str) -> list[int]:
        take(8)
        return [4711, 4712, 4713, 4714]

    @app.task(queue="reports")
    def add_up(order: int) -> int:
        take(4)
        return order % 97

    @app.task(queue="reports", retry=Retry(max_attempts=1))
    def draw_charts(day: str, fonts: str = "there") -> str:
        take(6)
        if fonts == "missing":
            raise FileNotFoundError("no font at /usr/share/fonts/Inter.ttf")
        return "charts.svg"

    @app.task(queue="reports")
    def write_report(sums: list[int], charts: str) -> str:
        take(5)
        return f"{sum(sums)} in all"

    @app.task(queue="mail")
    def send_report(report: str) -> str:
        take(1)
        return "sent"


def filled(url: str) -> Shop:
    """Let the shop be at work until now, in the database at *url*, and return what there is to look at."""
    until = SystemClock().now()
    half_hour = until.replace(minute=until.minute // 30 * 30, second=0, microsecond=0)
    clock = SettableClock(half_hour - _PAST)
    app = Mainspring(url, clock=clock)
    chance = random.Random(7)
    add_tasks(app, clock, chance)
    with _worker_called(_WORKERS[0]):
        _plan(app)
        number = _work(app, clock, chance, half_hour)
        flows = _workflows(app, clock)
        durable = app.enqueue("deliver_order", [number])
        drain(app)
        clock.jump(max(until - _LATELY, clock.now()))
        drain(app)
    _order(app, number)
    flows["unfinished"] = _nightly(app, "2026-11-16", "there")
    clock.jump(until)
    _add_history(app, clock)
    app.close()
    # From here on by the real clock: who has a lease by another one would seem to be lost.
    app = Mainspring(url)
    add_tasks(app)
    shop = _shown(app, _under_way(app), durable, flows)
    app.close()
    return shop


def _add_history(app: Mainspring, clock: SettableClock) -> None:
    """Tell what workers would have told of the last day, and what was seen waiting; a bank was away for a while."""
    chance, store, now = random.Random(3), app.client.store, clock.now()
    assert isinstance(store, SqlStore)
    for minutes in range(24 * 60, -1, -1):
        if minutes > 60 and minutes % 5:
            continue
        clock.jump(now - timedelta(minutes=minutes))
        busy = 30 + 25 * math.sin(minutes / 230) + chance.uniform(-6, 6)
        away = 20 < minutes < 28
        counts = Counts()
        counts.succeeded, counts.failed = int(busy * (0.4 if away else 1)), chance.choice((0, 0, 0, 1)) + 6 * away
        counts.retried = chance.randrange(3) + 9 * away
        for _ in range(counts.succeeded):
            counts.waits.add(abs(chance.gauss(0.02, 0.02)) + 2 * away)
        store.add_counts({(None, "payments"): counts})
        waiting = ("default", "payments", int(busy / 3) + 60 * away, (1 + 90 * away) * 1_000_000)
        samples._put(store._db, span_start(clock.now(), timedelta(minutes=1)), [waiting], None)
    clock.jump(now)


@contextmanager
def _worker_called(name: str) -> Iterator[None]:
    """Have jobs run by a worker with this name, whose code lies where nobody's in particular does."""
    module, made = sys.modules["mainspring.worker.execute"], failure_of

    def elsewhere(error: BaseException, *given: Any) -> Failure:
        failure = made(error, *given)
        return replace(failure, traceback=(failure.traceback or "").replace(__file__, "/srv/shop/tasks.py"))

    with (
        patch.object(sys.modules["mainspring.testing.drain"], "_NAME", name),
        patch.object(module, "failure_of", elsewhere),
    ):
        yield


def _plan(app: Mainspring) -> None:
    plan = app.schedules.add
    plan("sync-leipzig", "sync_stock", every("2h"), kwargs={"warehouse": "Leipzig"}, expect_success_within="1h")
    plan("sync-rotterdam", "sync_stock", every("3h"), kwargs={"warehouse": "Rotterdam"}, overlap=Overlap.SKIP)
    catalogue = {"supplier": "Hansen & Sons", "articles": 12_400}
    plan("catalogue", "import_catalogue", cron("15 */4 * * *", tz="Europe/Berlin"), kwargs=catalogue, jitter="2m")
    plan("report-sales", "read_orders", cron("0 7 * * mon-fri", tz="Europe/Berlin"), kwargs={"day": "yesterday"})
    plan("stocktaking", "sync_stock", cron("0 3 1 * *", tz="Europe/Berlin"), kwargs={"warehouse": "Leipzig"})


def _work(app: Mainspring, clock: SettableClock, chance: random.Random, until: datetime) -> int:
    """Have customers order, and do what is due, for as long as there is time; return the number of the last order."""
    number = 4_700
    while clock.now() < until:
        begun = clock.now()
        if begun.hour == 2:  # nobody was there
            clock.advance(_STEP)
            continue
        drain(app)
        for _ in range(chance.randrange(1, 4)):
            number += 1
            app.enqueue("charge_card", [number, chance.randrange(900, 19_900)])
            app.enqueue("send_receipt", kwargs={"order": number, "to": f"customer-{number}@example.org"})
            clock.advance(chance.uniform(20, 90))
        app.enqueue("resize_image", [f"articles/{number}.jpg", 640])
        drain(app)
        clock.jump(begun + _STEP)
    return number


def _workflows(app: Mainspring, clock: SettableClock) -> dict[str, WorkflowHandle[Any]]:
    """Make a workflow that went well, and one that did not."""
    made: dict[str, WorkflowHandle[Any]] = {}
    for day, fonts in (("2026-11-14", "there"), ("2026-11-15", "missing")):
        made[fonts] = _nightly(app, day, fonts)
        drain(app)
        clock.advance(60)
    return made


def _nightly(app: Mainspring, day: str, fonts: str) -> WorkflowHandle[Any]:
    with app.workflow("nightly", key=day) as flow:
        sums = flow.map("add_up", flow.add("read_orders", day))
        charts = flow.add("draw_charts", day, fonts=fonts)
        flow.add("send_report", flow.add("write_report", sums, charts))
    return flow.enqueue()


def _order(app: Mainspring, number: int) -> None:
    """Leave something to do."""
    app.enqueue("import_catalogue", kwargs={"supplier": "Hansen & Sons", "articles": 12_400})
    for width in (320, 640, 1280, 1920):
        app.enqueue("resize_image", [f"articles/{number}.jpg", width])
    for order in range(number + 1, number + 8):
        app.enqueue("send_receipt", kwargs={"order": order, "to": f"customer-{order}@example.org"})
        app.enqueue("charge_card", [order, 4_990], run_after="1h")
    app.enqueue("sync_stock", ["Leipzig"], run_after="1h").pause("inventory until noon", by=_OPERATOR)


def _under_way(app: Mainspring) -> Job:
    """Have two workers do some of what is to do, and return a job that has come half way."""
    store = app.client.store
    sessions = app.client.new_ids(len(_WORKERS))
    queues = (["default", "mail", "mainspring.notify", "payments"], ["images", "mainspring.notify", "reports"])
    names = sorted(task.name for task in app.tasks)
    for session, name, served in zip(sessions, _WORKERS, queues, strict=True):
        store.open_session(NewSession(id=session, name=name, lease=timedelta(hours=1), queues=served, tasks=names))
    images = store.claim(sessions[1], "images", 4)
    for job in images:
        wants = app.tasks.get(job.task).wants(job.payload)
        store.admit([(job.asking(wants), wants)])
    store.claim(sessions[0], "mail", 2)
    (running,) = store.claim(sessions[1], "reports", 1)
    said = [("info", "asking Hansen & Sons for all articles"), ("warning", "310 articles have no picture")]
    lines = [LogLine(running.id, running.fence, place, *words) for place, words in enumerate(said, 1)]
    store.record(lines, [Progress(running.id, running.fence, 7_312, 12_400, "importing articles")])
    return running


def _shown(app: Mainspring, running: Job, durable: JobHandle[Any], flows: dict[str, WorkflowHandle[Any]]) -> Shop:
    app.schedules.pause("stocktaking", reason="done by hand this month", by=_OPERATOR)
    app.queues.set("reports", ageing="10m")
    app.queues.pause("payments", reason="the bank has announced maintenance", by=_OPERATOR)
    app.breakers.trip("bank", lasting="2h", reason="maintenance until noon", by=_OPERATOR)
    app.breakers.trip("carrier", lasting="20m", by=_OPERATOR)
    app.notifications.add("chat", Webhook("https://chat.example.org/hooks/4f", secret="s3cret-for-the-chat"))
    app.notifications.add("ops", Email(["ops@example.org"]))
    _watch(app)
    token, secret = _let_in(app)
    _remember(app)
    app.within("acme").enqueue("resize_image", ["logo.png", 64])
    failed = app.jobs(state=JobState.FAILED, task="charge_card", limit=1)[0]
    return Shop(
        job=app.jobs(state=JobState.SUCCEEDED, task="charge_card", limit=1)[0].id,
        failed=failed.id,
        running=running.id,
        waiting=app.jobs(state=JobState.SCHEDULED, task="charge_card", limit=1)[0].id,
        durable=durable.id,
        workflow=flows["there"].id,
        broken_workflow=flows["missing"].id,
        unfinished_workflow=flows["unfinished"].id,
        schedule="sync-leipzig",
        group=app.dead.groups(task="charge_card")[0].fingerprint,
        queue="reports",
        breaker="bank",
        alert="dead-letters",
        notification="chat",
        token=token,
        secret=secret,
    )


def _watch(app: Mainspring) -> None:
    """Have alerts, one of which has been about to fire and another fires."""
    app.alerts.add("dead-letters", dead(over="1d"), notify=[Email(["ops@example.org"])])
    app.alerts.add("mail-waits", depth("mail", above=500))
    app.alerts.add("many-failures", error_rate(above=0.02, over="1d", at_least=20), hold="10m")
    app.alerts.add("schedules", missed_schedules(over="6h"))
    app.client.store.alert(_WORKERS[0])


def _let_in(app: Mainspring) -> tuple[str, str]:
    """Make tokens, and return the id of one and the secret of one that may do everything."""
    secret, _ = app.tokens.create("Ada", {"*": "admin"}, by="whoever set it up")
    _, shown = app.tokens.create("nightly build", {"acme": "submitter"}, expires="90d", by="Ada")
    app.tokens.create("wall screen", {"default": "viewer", "acme": "viewer"}, by="Ada")
    _, old = app.tokens.create("trial", {"default": "operator"}, expires="30d", by="Ada")
    app.tokens.revoke(old.id)
    return shown.id, secret


def _remember(app: Mainspring) -> None:
    app.audit.record(
        [
            Entry(_OPERATOR, "token.create", "nightly build", "acme", {"grants": {"acme": "submitter"}}),
            Entry(_OPERATOR, "schedule.pause", "stocktaking", "default", {"reason": "done by hand this month"}),
            Entry("token:p3xq7r2mnb4c nightly build", "job.enqueue", "resize_image", "acme", {"jobs": 1}),
            Entry(_OPERATOR, "queue.pause", "payments", "default", {"reason": "the bank has announced maintenance"}),
            Entry(_OPERATOR, "breaker.trip", "bank", None, {"reason": "maintenance until noon"}),
        ]
    )
