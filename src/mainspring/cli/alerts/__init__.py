"""`mainspring alerts`."""
