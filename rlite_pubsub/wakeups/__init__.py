"""How processes that share a store wake each other, and how they know who lives."""
