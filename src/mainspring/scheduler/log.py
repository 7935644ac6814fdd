"""Where the sweeps log."""

import logging

log = logging.getLogger("mainspring.scheduler")
