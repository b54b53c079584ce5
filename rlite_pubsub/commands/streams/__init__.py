"""Streams: XADD, XRANGE, XREAD and their kin."""
