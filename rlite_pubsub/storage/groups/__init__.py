"""Consumer groups: how far each has read, and what is pending with which consumer."""
