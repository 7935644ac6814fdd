"""`mainspring tasks`."""
