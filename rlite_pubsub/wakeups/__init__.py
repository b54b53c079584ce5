"""How processes that share a store wake each other, and how they know which of them live."""
