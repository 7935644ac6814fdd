"""`mainspring breakers`."""
