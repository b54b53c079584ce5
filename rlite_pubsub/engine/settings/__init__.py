"""Settings: which directives there are, their values, and the configuration file."""
