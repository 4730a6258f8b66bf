"""`arenite train`."""
