"""Mainspring runs background jobs, cron schedules and workflows on SQLite or PostgreSQL.

The flow has one word per step in every layer: enqueue → claim → execute → settle → notify, and the sweeps are
promote, fire, reap, release, alert and prune. Where they live:

    model/   nouns and rules, pure: what may happen to a job
    store/   everything that touches a database: making it happen
    cli/     the `mainspring` command
"""

from mainspring.errors import MainspringError
from mainspring.model.job import JobState, Priority
from mainspring.model.retry import Retry

__version__ = "0.1.0.dev0"

__all__ = ["JobState", "MainspringError", "Priority", "Retry", "__version__"]
