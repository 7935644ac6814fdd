"""`mainspring queues`."""
