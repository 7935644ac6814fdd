"""A little shop to look at: what `mainspring up --demo` runs, on a database of its own.

It is written as any app is. Customers order every few seconds; what follows from that is charged, packed, told and
now and then sent back, with what goes wrong in a shop going wrong here.
"""

from __future__ import annotations

import asyncio
import random
import time
from datetime import UTC, datetime, timedelta

from mainspring import (
    Breaker,
    Context,
    Limit,
    Mainspring,
    Overlap,
    Priority,
    Retry,
    Workflow,
    after,
    at,
    cron,
    every,
)
from mainspring.alerts import age, dead

app = Mainspring("sqlite:///mainspring-demo.db")

_CUSTOMERS = (*(f"{name}@example.org" for name in ("ada", "barbara", "edsger", "frances", "grace", "tony")), "alan@")
_MOST_CENTS = 1_000_000
_OPENED = time.monotonic()


class CardDeclined(Exception):
    """The bank has said no, and will say so again."""


@app.schedule(every("4s"), notes="Customers come and go.")
@app.task
def order(ctx: Context) -> int:
    """What a customer sets off: plain jobs that others do, each on its queue."""
    number, items = random.randrange(10_000, 99_999), random.randint(1, 4)
    ctx.log("order %d, %d items", number, items)
    charge.enqueue(number, cents=items * 1_295)
    for item in range(items):
        pack.enqueue(number, item + 1)
    confirm.using(run_after="5s").enqueue(number, random.choice(_CUSTOMERS))
    if random.random() < 0.2:
        take_back.using(run_after="20s").enqueue(number)
    return number


@app.task(
    queue="payments",
    priority=Priority.HIGH,
    retry=Retry(max_attempts=6, base="2s", never=(CardDeclined,)),
    breaker=Breaker("bank", open_at="50% of 6 in 1m", cooldown="10s..30s"),
)
def charge(ctx: Context, number: int, cents: int) -> str:
    """The bank is away for 20 s of every four minutes: attempts fail, and the breaker keeps the others from it."""
    if cents > _MOST_CENTS or random.random() < 0.05:
        raise CardDeclined("the card has no room for so much" if cents > _MOST_CENTS else "the card has expired")
    if (time.monotonic() - _OPENED) % 240 < 20:
        raise ConnectionError("the bank does not answer")
    ctx.log("charged %.2f for order %d", cents / 100, number)
    return f"receipt {number}"


@app.task(queue="warehouse", limits=[Limit("conveyor", concurrency=2)], retry=Retry(max_attempts=1), timeout="30s")
def pack(ctx: Context, number: int, item: int) -> None:
    """Two at a time, however many workers there are; the others wait for a place on the conveyor belt."""
    for done, step in enumerate(("fetch", "check", "wrap", "label")):
        ctx.progress(done, 4, step)
        time.sleep(random.uniform(0.1, 0.5))
    ctx.progress(4, 4)
    if random.random() < 0.02:
        raise LookupError(f"item {item} of order {number} is not on its shelf")


@app.task(queue="mail", limits=[Limit("smtp", rate="30/m", burst=3)], retry=Retry(max_attempts=3, base="1s"))
async def confirm(ctx: Context, number: int, to: str) -> str:
    """A wrong address stays wrong: after three attempts it is a dead letter."""
    await asyncio.sleep(0.2)
    if to.endswith("@"):
        raise ValueError(f"there is no mailbox {to!r}")
    ctx.log.info("told %s of order %d", to, number)
    return to


@app.task(queue="returns")
def take_back(ctx: Context, number: int) -> str:
    """A durable job: it sleeps and waits without a worker, and what it has done it does not do again."""
    label = ctx.step("print label", lambda: f"R-{number}")
    ctx.sleep("10s")
    parcel = ctx.wait_signal("parcel", timeout="2m")
    if parcel is None:
        return f"{label} never came"
    ctx.step("refund", ctx.log, "refunded order %d", number)
    return f"{label} {parcel}"


@app.schedule(after("15s"), notes="The postman rings again when he is done.")
@app.task(queue="returns")
def postman(ctx: Context) -> int:
    """Brings what customers send back: a signal to the job that waits for it."""
    waiting = [job for job in app.jobs(task="take_back", state="blocked", limit=5) if random.random() < 0.7]
    for job in waiting:
        job.signal("parcel", "arrived")
    ctx.log("%d parcels", len(waiting))
    return len(waiting)


@app.schedule(every("50s"), overlap=Overlap.SKIP, notes="Of a supplier whose server is slow.")
@app.task(queue="catalogue", priority=Priority.LOW, timeout="2m")
def import_catalogue(ctx: Context, pages: int = 60) -> int:
    """Slow work that says how far it is, and can be cancelled or paused at each page."""
    for page in range(1, pages + 1):
        time.sleep(0.5)
        ctx.progress(page, pages, f"page {page}")
        if page % 5 == 0:
            ctx.log("%d articles so far", page * 20)
    return pages


@app.task(queue="reports")
def branches() -> list[str]:
    return ["Berlin", "Kyoto", "Lisbon", "Nairobi", "Oslo", "Quito"]


@app.task(queue="reports", retry=Retry(max_attempts=3, base="1s"))
def count_stock(ctx: Context, branch: str) -> int:
    time.sleep(random.uniform(0.5, 3))
    if ctx.attempt == 1 and random.random() < 0.2:
        raise TimeoutError(f"{branch} does not pick up")
    return random.randint(100, 900)


@app.task(queue="reports")
def write_report(ctx: Context, counts: list[int]) -> str:
    ctx.log("%d branches, %d pieces", len(counts), sum(counts))
    return f"{sum(counts)} pieces"


@app.schedule(cron("* * * * *"), notes="Each minute, to have something to look at.")
@app.workflow(queue="reports")
def stock_report(wf: Workflow) -> None:
    """Fans out to all branches, and in again to one report."""
    wf.add(write_report, wf.map(count_stock, wf.add(branches)))


@app.schedule(cron("0 9 * * mon-fri", tz="Europe/Berlin"), notes="For the people in the office.")
@app.task(queue="mail", priority=Priority.LOW, expires="8h")
def digest() -> str:
    return "nothing new"


def open_shop() -> None:
    """Store what code alone can't say, and begin with some work; said again at each start."""
    app.retention.set(count=5_000, age="1d")
    app.alerts.add("dead-letters", dead(above=3, over="10m"), every="10s")
    app.alerts.add("mail-waits", age("mail", above="1m"), every="10s")
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    app.schedules.add("winter-sale", digest, at(midnight + timedelta(days=2)), notes="Once.")
    stock_report.enqueue()
    import_catalogue.using(key="import at the start").enqueue()
    take_back.enqueue(10_000)
    charge.using(run_after="1h", key="instalment").enqueue(10_000, cents=9_900)
    charge.enqueue(10_001, cents=2 * _MOST_CENTS)
    confirm.enqueue(10_001, "alan@")
    for _ in range(3):
        order.enqueue()
