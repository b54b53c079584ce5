"""What several commands read from their arguments in the same way."""
