"""`mainspring top`: what happens now, on the whole screen of a terminal."""
