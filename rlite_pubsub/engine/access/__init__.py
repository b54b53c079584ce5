"""Who may do what: users, their rules, and the log of denials."""
