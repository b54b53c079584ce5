"""Consumer groups: each is given every entry, and its consumers share them."""
