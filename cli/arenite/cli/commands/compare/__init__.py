"""`arenite compare`: every strategy on every model."""
