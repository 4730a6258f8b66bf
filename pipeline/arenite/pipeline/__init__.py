"""The way of a model: read, ordered, placed, fitted into a budget, built, compared."""
