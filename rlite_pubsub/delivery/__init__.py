"""Routes, publishing, spilling and reaping: the owner of the transactions and of the laws."""
