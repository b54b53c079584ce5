"""Whom HTTP lets in: tokens, users, origins."""
