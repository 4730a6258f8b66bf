"""The `arenite` command: the only place where all components meet."""
