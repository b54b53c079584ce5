"""Functions (FUNCTION LOAD, FCALL), in libraries that belong to the store."""
