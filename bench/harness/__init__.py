"""The harness of the contests."""
