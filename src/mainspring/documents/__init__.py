"""Documents: what programs are told, by the command line's --json as by the HTTP API."""
