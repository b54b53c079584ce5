"""Routes, publishing, spilling and reaping: who receives a message, in this process and in others."""
