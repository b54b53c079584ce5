"""CLUSTER.* and SHARD.*: keys that are spread over several stores."""
