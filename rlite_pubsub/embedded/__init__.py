"""The store without a server: connection classes for redis-py, sync and asyncio, over the very same commands."""
