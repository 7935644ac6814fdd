"""Tasks that do as a test wants, while it looks on."""

from __future__ import annotations

import threading
from queue import SimpleQueue

from mainspring import Context, Mainspring, Retry


class Switches:
    """What a test says to tasks: whether they fail, when those may end that take long, and what they log meanwhile."""

    def __init__(self) -> None:
        self.fails = True
        self.go = threading.Event()
        self.words: SimpleQueue[str] = SimpleQueue()

    def check(self, words: str) -> None:
        if self.fails:
            raise ConnectionError(words)


def add_tasks(app: Mainspring, switches: Switches) -> None:
    once = Retry(max_attempts=1)

    @app.task(retry=once)
    def import_prices(ctx: Context, supplier: str) -> str:
        ctx.log.info("asking %s for prices", supplier)
        switches.check(f"{supplier} does not answer")
        return f"all prices of {supplier} are in"

    @app.task
    def paint(ctx: Context, boards: int) -> str:
        """Takes until it is let go, and hears of what people want of it."""
        ctx.progress(1, boards, "painting")
        while not switches.go.wait(0.01):
            ctx.check()
            while not switches.words.empty():
                ctx.log.info(switches.words.get())
        return f"{boards} boards painted"

    @app.task
    def gather() -> list[int]:
        return [1, 2, 3]

    @app.task(retry=once)
    def clean(numbers: list[int]) -> list[int]:
        switches.check("there is no more soap")
        return sorted(numbers)

    @app.task
    def report(numbers: list[int]) -> int:
        return sum(numbers)
