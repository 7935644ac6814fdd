"""`mainspring notifications`."""
