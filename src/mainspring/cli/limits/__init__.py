"""`mainspring limits`."""
