"""Topics as a data source of Spark's: `spark.read.format("rlite")`, and what runs on it."""
