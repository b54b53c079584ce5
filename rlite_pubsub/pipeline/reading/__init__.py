"""Topics as DataFrames: planned on the driver, read by tasks from the server and from blocks."""
