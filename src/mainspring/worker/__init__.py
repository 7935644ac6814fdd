"""The worker: claim → execute → settle, a heartbeat beside it, and a watch over both."""
