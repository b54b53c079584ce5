"""Publishing and subscribing."""
