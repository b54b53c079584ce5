"""Commands that follow what is published: channels, topics, events."""
