"""The store in the place of a Redis server, for frameworks that open one by themselves: each module needs its own."""
