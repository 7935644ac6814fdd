"""`mainspring schedules`: make schedules, look at them, and act on them."""
