"""A strategy for Arenite that another package brings."""
