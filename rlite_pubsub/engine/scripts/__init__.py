"""Lua: scripts and functions."""
