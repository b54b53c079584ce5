"""A topic that has groups."""

from topic_house import house  # noqa: F401  a fixture
