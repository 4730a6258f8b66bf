"""Settings for every test."""

from hypothesis import settings

# Machines are shared: how long an example takes says nothing of the code.
settings.register_profile("arenite", deadline=None)
settings.load_profile("arenite")
