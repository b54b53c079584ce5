"""Backups: a store's data.mdb and its cold blocks, once or continuously, in a folder or a bucket, and back again."""
