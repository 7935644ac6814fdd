"""What the workers of a transaction storm run: jobs that each leave one row of their own."""

from __future__ import annotations

import os
import random
import time

from mainspring import Context, Mainspring

app = Mainspring(os.environ["STORM_URL"])


@app.task
def leave_a_row(ctx: Context, number: int) -> None:
    # Death may come before the block, within it, and after it: there the row and the success are both on record, or,
    # if the guarantee were broken, only one of them.
    time.sleep(random.uniform(0, 0.01))
    with ctx.transaction() as db:
        db.execute(f"INSERT INTO effects VALUES ({number})")
        time.sleep(random.uniform(0, 0.01))
    time.sleep(random.uniform(0, 0.03))
