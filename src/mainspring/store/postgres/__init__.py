"""PostgreSQL: one server, any number of nodes."""
