"""`arenite inspect`: the memory that a model needs, and what limits it."""
