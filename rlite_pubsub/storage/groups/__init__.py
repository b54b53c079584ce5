"""Consumer groups: how far each has read, what is pending with whom."""
