"""Models of one operator each, planned, built and run, and their results."""
