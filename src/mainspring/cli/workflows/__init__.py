"""`mainspring workflows`: look at workflows, and act on them as a whole."""
