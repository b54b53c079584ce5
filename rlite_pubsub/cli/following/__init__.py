"""What is published, and followed as it comes: channels, topics, events."""
