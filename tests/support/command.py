"""The `arenite` command, called in this process, for the tests of other components."""

from arenite.cli.group import GLANCE, commands
from arenite.cli.main import main

__all__ = ["GLANCE", "commands", "main"]
