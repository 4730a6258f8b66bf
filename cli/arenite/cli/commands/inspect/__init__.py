"""`arenite inspect`: what a model needs, and what binds it."""
