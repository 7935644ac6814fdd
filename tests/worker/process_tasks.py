"""Handlers that a child process can import. They tell the test what they do by files in its folder."""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import ctypes
import logging
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from datetime import date, timedelta
from pathlib import Path

from mainspring import Context, Mainspring, Snooze
from mainspring.errors import Stop

FOR_EVER = "1000"


class Unlucky(Exception):
    pass


class Hopeless(Unlucky):
    pass


def later(day: date, *, by: timedelta) -> date:
    return day + by


def pid() -> int:
    return os.getpid()


async def pid_later() -> int:
    await asyncio.sleep(0)
    return os.getpid()


def talk(ctx: Context) -> list[object]:
    ctx.log("began with %d", 7)
    ctx.log.warning("half way")
    ctx.progress(1, 2, "half way")
    ctx.check()
    assert ctx.deadline is not None
    return [str(ctx.job_id), ctx.attempt, ctx.fence]


def large(text: str) -> str:
    return text * 2


def weigh(text: str) -> list[int]:
    return [os.getpid(), len(text)]


def boom() -> None:
    raise ValueError("boom 42")


def out_of_luck(*, hope: bool) -> None:
    raise Unlucky("again") if hope else Hopeless("never again")


def leave() -> None:
    sys.exit("had enough")


def snooze(ctx: Context) -> int:
    if ctx.fence == 1:
        raise Snooze(0)
    return ctx.attempt


def exit_hard() -> None:
    os._exit(3)


def kill_itself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def grow_and_die() -> None:
    ballast = bytearray(400_000_000)
    os.kill(os.getpid(), signal.SIGKILL)
    ballast.clear()


def crash() -> None:
    ctypes.string_at(0)


def fork_and_exit() -> None:
    """Leave somebody behind who has all that this process had."""
    if os.fork() == 0:
        threading.Event().wait()
    os._exit(3)


def start_and_exit(folder: str) -> None:
    """Leave a program behind."""
    write(folder, "started", str(subprocess.Popen(["sleep", FOR_EVER]).pid))
    os._exit(3)


def be_deaf_from_now_on() -> int:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return os.getpid()


def be_told_to_end() -> str:
    os.kill(os.getpid(), signal.SIGTERM)
    return "went on"


def meet(folder: str, me: int, others: int) -> int:
    """Return when the others are here too."""
    Path(folder, str(me)).touch()
    while len(list(Path(folder).iterdir())) <= others:
        pass
    return os.getpid()


def spin(folder: str) -> None:
    """Run until it is stopped, and write down what stopped it."""
    atexit.register(write, folder, "left", "in good order")
    try:
        write(folder, "started", str(os.getpid()))
        while True:
            pass
    except Stop as stop:
        write(folder, "stopped", f"{type(stop).__name__}: {stop}")
        raise


def chat(ctx: Context, folder: str) -> None:
    """Speak without end, so that a stop comes while it does."""
    write(folder, "started", str(os.getpid()))
    while True:
        ctx.log("x" * 9_000)


def check(ctx: Context, folder: str) -> None:
    """Ignore the signal, and heed the check."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    write(folder, "started", str(os.getpid()))
    while True:
        ctx.check()


def deaf(folder: str) -> None:
    """Ignore all that can be ignored, and so does what it has started."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with subprocess.Popen(["sleep", FOR_EVER]) as sleeper:
        write(folder, "started", f"{os.getpid()} {sleeper.pid}")
        sleeper.wait()


async def wait_for_ever(folder: str) -> None:
    try:
        write(folder, "started", str(os.getpid()))
        await asyncio.Event().wait()
    finally:
        write(folder, "stopped", "cleaned up")


def count(folder: str) -> int:
    """Count, in a file, until it is enough."""
    n = 0
    while not Path(folder, "enough").exists():
        n += 1
        write(folder, "counted", f"{os.getpid()} {n}")
    return os.getpid()


def watch_deadline(ctx: Context, folder: str) -> None:
    """Write down the deadline, until it has moved."""
    first = ctx.deadline
    while ctx.deadline == first:
        write(folder, "first", str(first))
    write(folder, "moved", str(ctx.deadline))


def hoard() -> None:
    """Take all the memory that there is, to the last bit."""
    kept = []
    for size in (50_000_000, 1_000_000, 10_000, 1_000):
        with suppress(MemoryError):
            while True:
                kept.append(bytes(size))
    kept.append(bytes(50_000_000))


def write_letter(ctx: Context, text: str) -> str:
    with ctx.transaction(result=text) as connection:
        connection.execute(f"INSERT INTO letters VALUES ('{text}')")
    return "not this"


def write_about(ctx: Context, text: str) -> None:
    """Write a letter, and log it before and within."""
    ctx.log("about to write")
    ctx.progress(1, 2)
    with ctx.transaction() as connection:
        ctx.log("writing")
        ctx.progress(2, 2)
        connection.execute(f"INSERT INTO letters VALUES ('{text}')")


def spoil_letter(ctx: Context) -> None:
    with ctx.transaction() as connection:
        connection.execute("INSERT INTO letters VALUES ('spoilt')")
        raise ValueError("out of ink")


def write(folder: str, name: str, text: str) -> None:
    """Write *text* so that a reader sees all of it or none."""
    unready = Path(folder, f"{name}.unready")
    unready.write_text(text)
    unready.replace(Path(folder, name))


def fork(folder: str) -> None:
    """Leave somebody behind who has all that this process has."""
    if os.fork() == 0:
        write(folder, "forked", str(os.getpid()))
        threading.Event().wait()


def address() -> str:
    """Return the database of an app that names none."""
    return Mainspring().client.url


def work_with(url: str) -> None:
    """Be a worker whose threads run what may kill it."""
    app = Mainspring(url)
    app.task(exit_hard)
    app.task(pid)
    app.task(fork)
    app.task(executor="process")(deaf)
    app.run_worker(lease="1s")


def mark(folder: str, name: str) -> int:
    """Leave a mark that it was called, and return how often it has been."""
    with (Path(folder) / name).open("a") as ledger:
        ledger.write("x")
    return len((Path(folder) / name).read_text())


def two_steps_and_a_sleep(ctx: Context, folder: str, *, fails: bool = False) -> list[int]:
    first = ctx.step("first", mark, folder, "first")
    ctx.sleep("50ms")
    if fails and ctx.step("failing", mark, folder, "failing") == 1 and mark(folder, "attempts") < 2:
        raise Unlucky("once")
    return [first, ctx.step("second", mark, folder, "second"), ctx.wait_signal("go")]


async def async_steps(ctx: Context, folder: str) -> list[int]:
    first = await ctx.step("first", mark, folder, "first")
    await ctx.sleep("50ms")
    return [first, await ctx.wait_signal("go")]


def write_in_a_step(ctx: Context) -> int:
    def write_row() -> str:
        with ctx.transaction(result=7) as db:
            db.execute("INSERT INTO effects VALUES (1)")
        return "left aside"

    found: int = ctx.step("write", write_row)
    if ctx.fence == 1:
        raise Unlucky("once")
    return found


def say_of_itself(ctx: Context, then: str) -> None:
    ctx.details["rows"] = 7
    if then == "fail":
        raise Unlucky("after all")


def mutter(text: str) -> None:
    logging.getLogger("shop.mail").info("said %s", text)
    logging.getLogger("shop.mail").warning("warned of %s", text)
    logging.getLogger("shop.mail").debug("thought %s", text)


def mutter_and_say(ctx: Context) -> None:
    ctx.log("by the context")
    logging.getLogger("shop").error("by logging")


def mutter_when_over() -> None:
    """Leave a thread behind that speaks when the next attempt is under way."""

    def speak() -> None:
        _next_begun.wait()
        logging.getLogger("shop").error("too late")
        _late_said.set()

    threading.Thread(target=contextvars.copy_context().run, args=(speak,), daemon=True).start()


def wait_for_the_late() -> None:
    _next_begun.set()
    _late_said.wait()


_next_begun, _late_said = threading.Event(), threading.Event()
