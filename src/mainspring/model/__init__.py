"""Nouns and rules. Pure: no input or output, and time and chance come in as arguments."""
