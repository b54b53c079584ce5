"""Keys spread over several stores: which member has which slots, and redirecting clients."""
