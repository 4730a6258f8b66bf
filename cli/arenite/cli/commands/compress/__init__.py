"""`arenite compress`: prune, share weights, code."""
