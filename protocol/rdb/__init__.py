"""RDB's forms: a dumped value (DUMP, RESTORE) and what it is made of, as redis-server 7.0.15 writes them."""
