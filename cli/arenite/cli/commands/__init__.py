"""The commands of `arenite`, one a module."""
