"""Tasks whose arguments and results are sealed, in processes of their own."""

from __future__ import annotations

from typing import Any

from mainspring import Context, Mainspring, Retry

app = Mainspring(encrypt=True)


@app.task(executor="process", retry=Retry(max_attempts=2, base="10ms"))
def durable(ctx: Context, text: str) -> list[Any]:
    first = ctx.step("first", str.upper, text)
    if ctx.attempt == 1:
        raise ValueError("once more")
    return [first, ctx.wait_signal("go"), ctx.wait_signal("go")]


@app.task(executor="process")
def in_a_block(ctx: Context, text: str) -> None:
    with ctx.transaction(result=[text]):
        pass


@app.task(executor="process")
def adds(ctx: Context, text: str) -> None:
    ctx.add(shout, text)


@app.task
def shout(text: str) -> str:
    return f"{text}!"
