"""`mainspring tokens`."""
