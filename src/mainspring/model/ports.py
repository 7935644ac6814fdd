"""Ports: those to which requests may be sent."""

PORTS_FOR_REQUESTS = "80, 443 or one from 1024 up"


def takes_requests(port: int) -> bool:
    """Return whether web servers listen on *port*, which below 1024 belongs to mail, shells and databases."""
    return port in (80, 443) or 1024 <= port <= 65_535
