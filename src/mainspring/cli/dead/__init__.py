"""`mainspring dead`: look at dead letters, and replay or discard them."""
