"""`mainspring teams`."""
