"""Consumer groups: XGROUP, XREADGROUP, XACK and their kin."""
