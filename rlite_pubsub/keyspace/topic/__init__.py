"""Topics: entries are appended, read, followed, trimmed, retained, and moved to the cold store."""
