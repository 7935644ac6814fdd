"""What the workers of a storm of notifications run: jobs of which a receiver and people are told."""

from __future__ import annotations

import os

from mainspring import Mainspring, Retry
from mainspring.errors import Undeliverable
from mainspring.notify import tasks

# As often as it takes, and at once: the storm takes seconds, not hours.
tasks.RETRY = Retry(max_attempts=1_000, base="50ms", cap="300ms", never=(Undeliverable,))

app = Mainspring(os.environ["STORM_URL"])


@app.task(retry=Retry(max_attempts=1))
def work(number: int) -> None:
    if number % 3 == 0:
        raise ValueError(number)
