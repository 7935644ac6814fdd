"""What runs handlers: threads, coroutines on one loop, and processes."""
