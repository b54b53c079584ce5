"""Who may write: between processes and between threads, and in which order they wait."""
