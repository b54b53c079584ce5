"""DataFrames into topics: staged by tasks, appended by one commit."""
