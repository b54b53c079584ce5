"""Arguments that several commands read in the same way."""
