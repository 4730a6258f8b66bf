"""`arenite export`: a model that another runtime runs by our plan."""
