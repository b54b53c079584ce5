"""Functions (FUNCTION LOAD, FCALL): libraries of them, which are the store's."""
