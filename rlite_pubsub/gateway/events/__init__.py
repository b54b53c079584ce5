"""The event bus: events are posted, kept, and indexed by type."""
