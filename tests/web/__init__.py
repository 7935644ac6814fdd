"""The dashboard, over HTTP and in a browser."""
