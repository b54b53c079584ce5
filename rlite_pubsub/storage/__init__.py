"""The store on disk: two LMDB environments, their key layout, and one module per database."""
