"""`mainspring retention`."""
