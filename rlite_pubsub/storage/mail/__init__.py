"""Mailboxes: messages that wait for their readers, and what was lost on the way."""
