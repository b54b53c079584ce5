"""Requests and answers: what can be asked, how it is described, and the bounds on it."""
