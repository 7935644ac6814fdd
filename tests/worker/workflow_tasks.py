"""Tasks and workflows of an app that a child process can import."""

from __future__ import annotations

import os

from mainspring import Context, Mainspring, Workflow

app = Mainspring()


@app.task
def double(number: int) -> int:
    return 2 * number


@app.task
async def halve(number: int) -> float:
    return number / 2


@app.task(executor="process")
def total(numbers: list[float]) -> list[float]:
    return [sum(numbers), float(os.getpid())]


@app.task(executor="process")
def spread(ctx: Context, numbers: list[int]) -> int:
    ctx.map(double, [ctx.add(double, number) for number in numbers])
    return os.getpid()


@app.workflow(executor="process")
def made_elsewhere(wf: Workflow, numbers: list[int]) -> None:
    wf.add(total, wf.map(halve, wf.map(double, numbers)))
