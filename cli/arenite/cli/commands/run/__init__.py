"""`arenite run`: one inference, on files."""
