"""What sessions wait for: keys that others change, the cold store, the disk, a time, the end of a pause."""
