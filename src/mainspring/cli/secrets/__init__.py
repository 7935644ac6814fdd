"""`mainspring secrets`."""
