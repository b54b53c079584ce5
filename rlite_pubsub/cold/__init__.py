"""The cold store: a topic's old entries in blocks, immutable Parquet files that anything can read. Needs the extra
`[cold]` (pyarrow), which nobody loads before a cold store is used."""
