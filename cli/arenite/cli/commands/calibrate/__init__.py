"""`arenite calibrate`: what this machine's work costs."""
