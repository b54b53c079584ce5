"""The window of the log: the newest rows of a store, which every process of the store reads in shared memory."""
