"""Everything that touches a database. Python once, SQL twice."""

from mainspring.store.open import open_store
from mainspring.store.protocol import Store

__all__ = ["Store", "open_store"]
