"""Handlers that try to give a secret away in every way they can, for a worker in a process of its own."""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from typing import Any
from urllib.parse import quote

from mainspring import Context, Mainspring, Retry
from tests.support.waiting import until

app = Mainspring()
TWICE = Retry(max_attempts=2, base="10ms")


def tell(ctx: Context, token: str, deep: dict[str, Any]) -> Any:
    held = deep["headers"][0]["Authorization"]
    assert held != token
    for number, value in enumerate((token, held)):
        ctx.log("it is %s", value)
        ctx.log.warning(json.dumps({"token": value}), extra={"token": value})
        ctx.log(quote(value, safe=""))
        ctx.log("x" * 4_995 + value + "y" * 20_000)
        ctx.progress(1, 2, f"with {value}")
        kept = ctx.step(f"keep {number}", list, [value, {value: 1}])
        assert value not in kept
    return kept


def fail_first(ctx: Context, token: str, deep: dict[str, Any]) -> Any:
    if ctx.attempt == 1:
        try:
            dict[str, int]()[token]
        except KeyError as error:
            error.add_note(f"with {token}")
            ctx.log.exception("it was raised")
            filler = "x" * (9_980 - len(token))  # so that a message is cut in the midst of it
            raise ValueError(f"no good: {token} {filler}{token}{'y' * 20_000}") from error
    basic = b64encode(f"user:{token}".encode()).decode()
    return {"token": token, "all": deep, "basic": f"Basic {basic}", token: 1}


def everything(ctx: Context, token: str, deep: dict[str, Any]) -> Any:
    tell(ctx, token, deep)
    return fail_first(ctx, token, deep)


@app.task(retry=TWICE)
def in_thread(ctx: Context, token: str, deep: dict[str, Any]) -> Any:
    return everything(ctx, token, deep)


@app.task(retry=TWICE, timeout="60s")
async def on_loop(ctx: Context, token: str, deep: dict[str, Any]) -> Any:
    ctx.log("it is %s", token)
    ctx.progress(1, 2, f"with {token}")
    await ctx.step("keep", list, [token])
    return fail_first(ctx, token, deep)


@app.task(retry=TWICE, executor="process")
def in_process(ctx: Context, token: str, deep: dict[str, Any]) -> Any:
    return everything(ctx, token, deep)


@app.task(executor="process")
def in_a_block(ctx: Context, token: str, deep: dict[str, Any]) -> None:
    with ctx.transaction(result={"token": token, "deep": deep}):
        ctx.log("within: %s", token)


@app.task(executor="process")
def where_it_is_seen(token: str) -> bool:
    """Return whether other processes could see the value among the arguments or in the environment of this one."""
    seen = ""
    for name in ("cmdline", "environ"):
        with open(f"/proc/self/{name}") as file:
            seen += file.read()
    return token in seen


def run() -> None:
    """Work until all jobs have ended."""
    with app.worker(concurrency=2):
        until(lambda: all(job.state.final for job in app.jobs()))
    sys.stdout.write("all have ended\n")
