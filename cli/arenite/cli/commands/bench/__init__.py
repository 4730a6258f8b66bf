"""`arenite bench`: latency and memory beside other engines."""
