"""An engine without sockets, and who speaks with it."""

from engine_fixtures import client, house, session  # noqa: F401  fixtures
