"""`mainspring audit`."""
