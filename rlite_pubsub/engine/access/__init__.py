"""Access control: users, their rules, and the log of denials."""
