"""Injection: whatever people write, wherever they may, is text to everybody who looks at it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from mainspring import Context, Email, JobState, Mainspring, Retry, Webhook, every
from mainspring.alerts import dead
from mainspring.errors import MainspringError
from mainspring.job_handle import JobHandle
from mainspring.model.audit import Entry
from mainspring.model.session import NewSession
from mainspring.server import Server
from mainspring.web.session import TOKEN
from tests.browser.chromium import opened
from tests.browser.payloads import PAYLOADS
from tests.browser.shop import Shop
from tests.browser.tour import tour
from tests.support.factories import new_id
from tests.support.waiting import until

pytestmark = pytest.mark.slow

ALL = "\n".join(PAYLOADS)
LEFT_BEHIND = """[...document.querySelectorAll(
  '[data-pwned], base, meta[http-equiv], iframe, body script, [href^="javascript:" i], [action^="javascript:" i]')]
  .map((one) => one.outerHTML.slice(0, 80))"""


class Written:
    """Writes what it is told to, and counts what was taken and what was refused."""

    def __init__(self) -> None:
        self.taken = 0
        self.refused = 0

    def __call__(self, write: Callable[..., Any], *given: Any, **named: Any) -> Any:
        try:
            made = write(*given, **named)
        except MainspringError:
            self.refused += 1
            return None
        self.taken += 1
        return made


def add_tasks(app: Mainspring, over: threading.Event) -> None:
    @app.task(retry=Retry(max_attempts=1))
    def fails(ctx: Context, words: str, more: dict[str, str] | None = None) -> None:
        ctx.log.error("%s", words)
        raise type(words[:60], (ValueError,), {})(words)

    @app.task
    def says(ctx: Context, words: str) -> list[str]:
        ctx.log.info("%s", words)
        ctx.step(words[:60], lambda: words)
        return [words]

    @app.task(queue="long")
    def stays(ctx: Context, words: str) -> None:
        ctx.progress(1, 2, words)
        over.wait()


def write_everywhere(app: Mainspring, write: Written) -> Shop:
    """Put each payload into every field that takes words from people, and return what there is to look at then."""
    ran: list[JobHandle[Any]] = []
    for number, words in enumerate(PAYLOADS):
        ran += _enqueue(app, words, write)
        write(app.enqueue, words)
        write(app.enqueue, "says", [words], queue=words)
        write(app.within, words)
        write(app.schedules.add, words, "says", every("1h"), args=[words])
        write(app.schedules.add, f"s{number}", "says", every("1h"), args=[words], notes=words)
        write(app.schedules.pause, f"s{number}", reason=words, by=words)
        write(app.tokens.create, words, {"acme": "viewer"}, by=words)
        write(app.tokens.create, "x", {words: "viewer"})
        write(app.alerts.add, words, dead())
        write(app.breakers.trip, words, reason=words, by=words)
        write(app.notifications.add, words, Email(["ops@example.org"]))
        write(lambda words: app.notifications.add("x", Webhook(words)), words)
        write(lambda words: app.notifications.add("x", Email([words])), words)
        write(app.audit.record, [Entry(words, "job.cancel", words, None, {words: words})])
        write(app.queues.pause, f"q{number}", reason=words, by=words)
        write(app.paused_tasks.pause, words)
        write(app.workflow, words)
        write(app.client.store.open_session, _session(words))
    return _things(app, ran)


def _session(words: str) -> NewSession:
    return NewSession(id=new_id(), name=words, queues=[words], tasks=[words])


def _enqueue(app: Mainspring, words: str, write: Written) -> list[JobHandle[Any]]:
    """Enqueue jobs that say *words*, fail with them, and are cancelled or paused because of them."""
    failed = write(app.enqueue, "fails", [words], {"more": {words: words}}, key=words, idempotency_key=words)
    said = write(app.enqueue, "says", [words], fair=words)
    cancelled, paused = (app.enqueue("says", [words], run_after="1h") for _ in range(2))
    write(cancelled.cancel, words)
    write(paused.pause, words, by=words)
    return [one for one in (failed, said) if one is not None]


def _things(app: Mainspring, ran: list[JobHandle[Any]]) -> Shop:
    schedule = app.schedules.add("all", "says", every("1h"), args=[ALL], notes=ALL[:2_000])
    app.schedules.pause(schedule.id, reason=ALL[:200], by=ALL[:200])
    app.schedules.trigger(schedule.id)
    with app.workflow("words", key=ALL[:200]) as flow:
        flow.add("says", flow.add("fails", ALL))
    app.alerts.add("dead", dead(over="1d"), every="1s")
    app.notifications.add("mail", Email(["ops@example.org"], subject=PAYLOADS[0]))
    app.paused_tasks.pause("mainspring.http", reason=ALL[:200], by=ALL[:200])
    run, failed, said, running = flow.enqueue(), *(app.enqueue(task, [ALL]) for task in ("fails", "says", "stays"))
    until(lambda: all(job.state.final for job in (*ran, run, failed, said)) and running.refresh().reached)
    return Shop(
        job=said.id,
        failed=failed.id,
        running=running.id,
        waiting=app.jobs(state=JobState.PAUSED)[0].id,
        durable=said.id,
        workflow=run.id,
        broken_workflow=run.id,
        unfinished_workflow=run.id,
        schedule=schedule.id,
        group=app.dead.groups(limit=1)[0].fingerprint,
        queue="default",
        breaker=quote(app.breakers.list()[0].key),
        alert="dead",
        notification="mail",
        token=app.tokens.list()[0].id,
        secret="",
    )


@pytest.fixture
def over() -> Iterator[threading.Event]:
    made = threading.Event()
    yield made
    made.set()


@pytest.fixture
def hostile(sqlite_url: str, over: threading.Event) -> Iterator[Mainspring]:
    """An app with a worker, and tasks that say, and fail with, whatever they are given."""
    app = Mainspring(f"{sqlite_url}?synchronous=normal")
    add_tasks(app, over)
    with app.worker(concurrency=4, capture_logs="off"):
        yield app
        over.set()
    app.close()


def addresses(app: Mainspring, shop: Shop) -> list[str]:
    """Return every page, and those of all things of which there is one for each payload."""
    thrice = zip(PAYLOADS[::3], PAYLOADS[1::3], PAYLOADS[2::3], strict=True)
    return [
        *(address for there in tour(shop).values() for address in there.values()),
        *(f"/jobs/{job.id}" for job in app.jobs(state=JobState.FAILED, limit=100)),
        *(f"/schedules/s{number}" for number in range(len(PAYLOADS))),
        *(f"/limits/breakers/reset?key={quote(breaker.key)}" for breaker in app.breakers.list()[::3]),
        *(f"/jobs?task={quote(task)}&queue={quote(queue)}&key={quote(key)}" for task, queue, key in thrice),
        *(f"/dead/{group.fingerprint}" for group in app.dead.groups(limit=100)[::3]),
        f"/login?next={quote(ALL)}",
    ]


def test_whatever_is_written_anywhere_is_text(browser: Browser, hostile: Mainspring) -> None:
    write = Written()
    shop = write_everywhere(hostile, write)
    secret, _ = hostile.tokens.create("whoever looks", {"*": "admin"})
    server = Server(hostile, "127.0.0.1", 0)
    server.start()
    context, complaints = opened(browser, base_url=server.url, forgiven={404, 422})
    context.add_cookies([{"name": TOKEN, "value": secret, "url": server.url}])
    ran: list[str] = []
    context.expose_binding("pwned", lambda _, number: ran.append(str(number)))
    context.on("dialog", lambda dialog: dialog.dismiss())
    context.on("dialog", lambda dialog: ran.append(dialog.message))
    page = context.new_page()

    for address in addresses(hostile, shop):
        page.goto(address)
        ran += page.evaluate(LEFT_BEHIND)
        assert page.title().endswith("Mainspring"), address
        assert page.url.startswith(server.url)
    _refreshed(page, hostile, shop)
    ran += page.evaluate(LEFT_BEHIND)
    context.close()
    server.stop()

    assert ran == []
    assert complaints == []
    assert write.taken > 10 * len(PAYLOADS)
    assert write.refused > 4 * len(PAYLOADS)


def _refreshed(page: Page, app: Mainspring, shop: Shop) -> None:
    """See the same put in place by the script, which reads a page anew."""
    page.goto(f"/jobs/{shop.failed}")
    app.job(shop.failed).replay(PAYLOADS[3])
    expect(page.get_by_role("list").filter(has_text="attempt 1").get_by_role("listitem")).to_have_count(2)


def test_the_payloads_would_be_noticed(browser: Browser) -> None:
    """Written into a page as they are, without our policy, most of them do what they are meant to."""
    context = browser.new_context()
    ran: list[str] = []
    context.expose_binding("pwned", lambda _, number: ran.append(str(number)))
    page = context.new_page()
    for words in PAYLOADS:
        page.set_content(f'<a href="{words}">{words}</a>', wait_until="commit")
        ran += page.evaluate(LEFT_BEHIND)
    context.close()

    assert len(ran) > len(PAYLOADS) / 2
