"""Settings: the directives, their values, and the configuration file."""
