"""Views: one module for each kind of thing that pages are about."""
