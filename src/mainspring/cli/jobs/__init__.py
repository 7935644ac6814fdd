"""`mainspring jobs`: look at jobs, and act on them."""
