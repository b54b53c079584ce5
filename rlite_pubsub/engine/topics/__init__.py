"""An engine's work on topics beyond their commands: retention, readers, short appends, trims and limits."""
