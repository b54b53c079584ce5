"""Keys that are spread over several stores: which member has which slots, and who is told to go elsewhere."""
