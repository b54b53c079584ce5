"""Links of a store to other servers: what is published here goes there, and the other way round."""
