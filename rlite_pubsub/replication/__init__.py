"""Keys in and out, as Redis's own tools do it: RDB files, append-only files, and a master's stream."""
