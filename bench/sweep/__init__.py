"""Models of one operator each, put through all that we do with a model, and what came of it."""
