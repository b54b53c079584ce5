"""What an engine does with topics beyond their commands: retention, readers, short appends, trims and limits."""
